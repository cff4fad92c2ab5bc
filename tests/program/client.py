"""`python -I -S client.py SOCKET PYTHON ARGUMENTS…`: agentd with these arguments, forked by the fork server.

Its streams are this process's own; it is this process that its caller waits for.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket  # the module socket takes three times as long to import

HEADER = 8


def main(path: str, python: str, arguments: list[str]) -> int:
    import _json  # noqa: F401
    from json import dumps

    request = {"argv": arguments, "cwd": os.getcwd(), "env": dict(os.environ), "python": python}
    data = dumps({**request, "new_session": False, "process_group": -1}).encode()
    client = socket(AF_UNIX)
    client.connect(path)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    client.sendmsg([len(data).to_bytes(HEADER, "big") + data], [(SOL_SOCKET, SCM_RIGHTS, streams)])
    for number in (0, 1):
        os.close(number)  # else nobody would see the end of them
    told = b""
    while part := client.recv(64):
        told += part
    return os.waitstatus_to_exitcode(int(told.split()[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
