"""Reads a Starknet network in the version of the installed starknet.py:

python starknetversion.py URL KEY CHUNK
"""

import asyncio
import json
import sys
import warnings

from starknet_py.constants import EXPECTED_RPC_VERSION
from starknet_py.net.full_node_client import FullNodeClient

url, key, chunk = sys.argv[1:4]


async def read():
    client = FullNodeClient(node_url=url)
    latest = await client.get_block_hash_and_number()
    page = await client.get_events(keys=[[key]], from_block_number=0, chunk_size=int(chunk))
    block = await client.get_block_with_tx_hashes(block_number=1)
    newest = "pending" if EXPECTED_RPC_VERSION.startswith("0.8") else "pre_confirmed"
    await client.get_block_with_tx_hashes(block_number=newest)
    receipt = await client.get_transaction_receipt(page.events[0].transaction_hash)
    return {
        "expected": EXPECTED_RPC_VERSION, "version": await client.spec_version(), "events": len(page.events),
        "receipt": receipt.block_number == page.events[0].block_number, "block": block.block_number, "follows": latest.block_number > 0,
    }


warnings.simplefilter("error")  # it warns about another version of the specification
print(json.dumps(asyncio.run(read())))
