"""``python -m exactsel``."""

from exactsel.cli.main import main

if __name__ == "__main__":
    main()
