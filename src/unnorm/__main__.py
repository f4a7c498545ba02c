"""`python -m unnorm` is the command `unnorm`."""

from .cli import main

if __name__ == "__main__":
    main()
