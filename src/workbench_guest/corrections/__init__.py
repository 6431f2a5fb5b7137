"""Common mistakes corrected in place, each by a rule of its own, and every correction told.

Before a cell runs, where it does not compile or a name is bound nowhere; while it runs, where data of tools is misread;
after it failed, as hints alone. Nothing runs twice, and what compiles is not rewritten. A convenience and no wall: it
lives in the process of the code that it serves.
"""
