"""Reads the demo with web3.py: python web3client.py HTTP-URL WS-URL TOKEN HOLDER BLOCK"""

import asyncio
import json
import sys

import requests
from web3 import AsyncWeb3, Web3
from web3.exceptions import ContractLogicError
from web3.providers import WebSocketProvider

http, ws, token, holder, block = sys.argv[1:6]
number = int(block)
token, holder = Web3.to_checksum_address(token), Web3.to_checksum_address(holder)
transfer = Web3.to_hex(Web3.keccak(text="Transfer(address,address,uint256)"))
held_data = "0x70a08231" + holder[2:].lower().rjust(64, "0")
too_much_data = "0xa9059cbb" + holder[2:].lower().rjust(64, "0") + hex(1 << 200)[2:].rjust(64, "0")


def filter_of():
    return {"address": token, "topics": [transfer], "fromBlock": number - 9, "toBlock": number}


def summary(chain, head, balance, code, logs, receipt, held, reverted, newest):
    return {
        "chain": str(chain), "hash": Web3.to_hex(head["hash"]),
        "transactions": [Web3.to_hex(t) for t in head["transactions"]], "balance": str(balance),
        "code": Web3.to_hex(code), "logs": len(logs), "gasUsed": str(receipt["gasUsed"]),
        "held": str(int.from_bytes(held, "big")), "reverted": reverted, "follows": newest >= number,
    }


def by_http():
    w3 = Web3(Web3.HTTPProvider(http))
    head = w3.eth.get_block(number)
    reverted = "no"
    try:
        w3.eth.call({"from": token, "to": token, "data": too_much_data}, number)
    except ContractLogicError:
        reverted = "ContractLogicError"
    return summary(
        w3.eth.chain_id, head, w3.eth.get_balance(holder, number), w3.eth.get_code(token, number),
        w3.eth.get_logs(filter_of()), w3.eth.get_transaction_receipt(head["transactions"][0]),
        w3.eth.call({"to": token, "data": held_data}, number), reverted, w3.eth.block_number,
    )


async def by_socket():
    async with AsyncWeb3(WebSocketProvider(ws)) as w3:
        head = await w3.eth.get_block(number)
        reverted = "no"
        try:
            await w3.eth.call({"from": token, "to": token, "data": too_much_data}, number)
        except ContractLogicError:
            reverted = "ContractLogicError"
        balance, code, logs, receipt, held = await asyncio.gather(
            w3.eth.get_balance(holder, number), w3.eth.get_code(token, number), w3.eth.get_logs(filter_of()),
            w3.eth.get_transaction_receipt(head["transactions"][0]), w3.eth.call({"to": token, "data": held_data}, number),
        )
        return summary(await w3.eth.chain_id, head, balance, code, logs, receipt, held, reverted, await w3.eth.block_number)


answers = {"http": by_http(), "ws": asyncio.run(by_socket())}
answers["wrongKey"] = requests.post(http + "x", json={"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}).status_code
print(json.dumps(answers))
