"""A LibreOffice that listens on a pipe, for the benchmarks that drive it."""

import time

import uno


def connect(pipe: str) -> object:
    """The desktop of the LibreOffice that listens on a pipe."""
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext(
        "com.sun.star.bridge.UnoUrlResolver", local
    )
    for _ in range(600):
        try:
            url = f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext"
            context = resolver.resolve(url)
            desktop = "com.sun.star.frame.Desktop"
            return context.ServiceManager.createInstanceWithContext(desktop, context)
        except Exception:
            time.sleep(0.1)
    raise SystemExit("LibreOffice did not answer")
