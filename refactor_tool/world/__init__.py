"""All IO: work trees, git objects, output folders, applying a series, the terminal.

The only room that runs a process, touches a file or reads the environment. It knows neither Go nor codemods.
"""
