# cryotool.py URL DATASET FOLDER: has cryo write a data set of blocks 50 to 60 as CSV.
import os
import sys

import cryo

url, dataset, folder = sys.argv[1:]
done = cryo.freeze(dataset, blocks=["50:61"], rpc=url, output_dir=folder, file_format="csv", verbose=False, no_report=True)
if done["n_completed"] != 1 or done["n_errored"] != 0:
    sys.exit(f"cryo: {done}")
# Python does not finalize itself: threads of cryo's still run then, and have crashed it on a busy machine.
os._exit(0)
