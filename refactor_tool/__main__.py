"""Run the command line: `python -m refactor_tool`."""

from refactor_tool.cli import main

if __name__ == "__main__":
    main()
