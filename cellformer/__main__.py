"""`python -m cellformer`: the command."""

from cellformer.command.main import main

if __name__ == "__main__":
    main()
