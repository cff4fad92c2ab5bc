"""`make docs`: the pages that are made from the code, written."""

import reference

if __name__ == "__main__":
    reference.write()
