"""Reads the demo's Starknet network with starknet.py: python starknetclient.py URL FROM TO KEY CHUNK

It lists the events of blocks FROM to TO whose first key is KEY, CHUNK at a time.
"""

import asyncio
import json
import sys
import warnings

from starknet_py.net.client_errors import ClientError
from starknet_py.net.full_node_client import FullNodeClient

url, first, last, key, chunk = sys.argv[1:6]


def fields(event):
    return {
        "block_hash": hex(event.block_hash), "block_number": event.block_number,
        "transaction_hash": hex(event.transaction_hash), "transaction_index": event.transaction_index,
        "event_index": event.event_index, "from_address": hex(event.from_address),
        "keys": [hex(k) for k in event.keys], "data": [hex(d) for d in event.data],
    }


async def read():
    client = FullNodeClient(node_url=url)
    events, pages, token = [], 0, None
    while pages == 0 or token is not None:
        page = await client.get_events(
            keys=[[key]], from_block_number=int(first), to_block_number=int(last), chunk_size=int(chunk), continuation_token=token,
        )
        events += page.events
        token = page.continuation_token
        pages += 1
    every = await client.get_events(  # it follows the tokens itself, by default to the newest block
        keys=[[key]], from_block_number=int(first), chunk_size=int(chunk), follow_continuation_token=True,
    )
    latest = await client.get_block_hash_and_number()
    wrong = 0
    try:
        await FullNodeClient(node_url=url + "x").get_block_number()
    except ClientError as error:
        wrong = int(error.code)
    return {
        "version": await client.spec_version(), "chain": await client.get_chain_id(),
        "follows": await client.get_block_number() >= latest.block_number and every.events[: len(events)] == events,
        "receipts": [(await client.get_transaction_receipt(e.transaction_hash)).block_number for e in events[:3]],
        "events": [fields(e) for e in events], "pages": pages, "wrongKey": wrong,
    }


warnings.simplefilter("ignore")  # it warns about another version of the specification
print(json.dumps(asyncio.run(read())))
