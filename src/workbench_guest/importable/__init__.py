"""This folder is on the path of every Python in a sandbox: `import composio_helper` and `import workbench_helper`."""
