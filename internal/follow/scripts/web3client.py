"""Prints the notifications that web3.py receives: python web3client.py HTTP-URL WS-URL CONTRACT"""

import asyncio
import json
import os
import sys
import threading
import time
import traceback

from web3 import AsyncWeb3, Web3
from web3.providers import WebSocketProvider

http, ws, contract = sys.argv[1:4]
contract = Web3.to_checksum_address(contract)


def emit(stream, **event):
    os.write(1, (json.dumps({"stream": stream, **event}) + "\n").encode())


def emit_log(stream, log):
    emit(stream, block=Web3.to_hex(log["blockHash"]), number=log["blockNumber"], topic=Web3.to_hex(log["topics"][0]), removed=log["removed"])


def poll():
    try:
        changes = Web3(Web3.HTTPProvider(http)).eth.filter({"address": contract})
        while True:
            for log in changes.get_new_entries():
                emit_log("polled", log)
            time.sleep(0.2)
    except Exception:
        traceback.print_exc()
        os._exit(1)


async def watch():
    async with AsyncWeb3(WebSocketProvider(ws)) as w3:
        heads = await w3.eth.subscribe("newHeads")
        await w3.eth.subscribe("logs", {"address": contract})
        async for message in w3.socket.process_subscriptions():
            result = message["result"]
            if message["subscription"] == heads:
                emit("heads", block=Web3.to_hex(result["hash"]), number=result["number"])
            else:
                emit_log("logs", result)


threading.Thread(target=poll, daemon=True).start()
asyncio.run(watch())
