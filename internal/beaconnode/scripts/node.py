"""A beacon node over a geth: a chain whose execution blocks geth builds, and its beacon API.

    node.py ENGINE-URL SECRET-FILE GETH-URL SLOT-SECONDS PAST-SLOTS

It first makes the slots up to now. Then it prints a line of JSON with its URL and the root of a
finalized block of the first period, and makes a block in every slot until it is killed.
"""

import base64
import hashlib
import hmac
import json
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from chain import Chain, to_json

GAS = 200 / 1000  # seconds that geth has for a block with transactions


class Engine:
    """geth's Engine API."""

    def __init__(self, url, secret_file):
        self.url = url
        with open(secret_file) as f:
            self.secret = bytes.fromhex(f.read().strip().removeprefix("0x"))

    def token(self):
        def part(value):
            return base64.urlsafe_b64encode(value).rstrip(b"=")

        claim = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()) + b"." + part(json.dumps({"iat": int(time.time())}).encode())
        return (claim + b"." + part(hmac.new(self.secret, claim, hashlib.sha256).digest())).decode()

    def call(self, method, *params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json", "Authorization": "Bearer " + self.token()})
        with urllib.request.urlopen(request, timeout=60) as answer:
            result = json.load(answer)
        if "error" in result:
            raise RuntimeError(f"{method}: {result['error']}")
        return result["result"]


def hexed(value):
    return "0x" + bytes(value).hex()


class Node:
    def __init__(self, engine, public, slot_seconds, past):
        self.engine, self.slot_seconds = engine, slot_seconds
        first = public.call("eth_getBlockByNumber", "0x0", False)
        self.genesis_time = int(time.time()) - past * slot_seconds
        self.chain = Chain({"fulu": 0}, genesis_time=self.genesis_time, slot_ms=1000 * slot_seconds, genesis_execution={
            "block_hash": bytes.fromhex(first["hash"][2:]), "state_root": bytes.fromhex(first["stateRoot"][2:]),
            "gas_limit": int(first["gasLimit"], 16), "base_fee_per_gas": int(first["baseFeePerGas"], 16),
            "block_number": 0, "timestamp": int(first["timestamp"], 16),
        })
        self.first = first["hash"]
        self.answers = {}  # path -> JSON; replaced as a whole
        self.live = False

    def final(self):
        """The hash of the execution block that is final."""
        root = self.chain.state.finalized_checkpoint.root
        if root not in self.chain.blocks or root == self.chain.genesis_root:
            return "0x" + "00" * 32
        return hexed(self.chain.blocks[root][1].message.body.execution_payload.block_hash)

    def forkchoice(self, head, attributes=None):
        state = {"headBlockHash": head, "safeBlockHash": self.final(), "finalizedBlockHash": self.final()}
        answer = self.engine.call("engine_forkchoiceUpdatedV3", state, attributes)
        if answer["payloadStatus"]["status"] != "VALID":
            raise RuntimeError(f"geth does not follow: {answer}")
        return answer["payloadId"]

    def fill(self, spec, block):
        """Has geth build the execution payload of a block."""
        draft = block.body.execution_payload
        identifier = self.forkchoice(hexed(draft.parent_hash), {
            "timestamp": hex(draft.timestamp), "prevRandao": hexed(draft.prev_randao), "suggestedFeeRecipient": hexed(draft.fee_recipient),
            "withdrawals": [{
                "index": hex(w.index), "validatorIndex": hex(w.validator_index), "address": hexed(w.address), "amount": hex(w.amount),
            } for w in draft.withdrawals],
            "parentBeaconBlockRoot": hexed(block.parent_root),
        })
        if self.live:
            time.sleep(GAS)
        built = self.engine.call("engine_getPayloadV5", identifier)
        payload = built["executionPayload"]
        if built["executionRequests"] or built["blobsBundle"]["commitments"]:
            raise RuntimeError("requests and blobs are not supported")
        status = self.engine.call("engine_newPayloadV4", payload, [], hexed(block.parent_root), [])
        if status["status"] != "VALID":
            raise RuntimeError(f"geth refuses its own block: {status}")

        def data(name):
            return bytes.fromhex(payload[name][2:])

        def number(name):
            return int(payload[name], 16)

        block.body.execution_payload = spec.ExecutionPayload(
            parent_hash=data("parentHash"), fee_recipient=data("feeRecipient"), state_root=data("stateRoot"), receipts_root=data("receiptsRoot"),
            logs_bloom=data("logsBloom"), prev_randao=data("prevRandao"), block_number=number("blockNumber"), gas_limit=number("gasLimit"),
            gas_used=number("gasUsed"), timestamp=number("timestamp"), extra_data=data("extraData"), base_fee_per_gas=number("baseFeePerGas"),
            block_hash=data("blockHash"), transactions=[bytes.fromhex(tx[2:]) for tx in payload["transactions"]],
            withdrawals=draft.withdrawals, blob_gas_used=number("blobGasUsed"), excess_blob_gas=number("excessBlobGas"))

    def advance(self):
        """Makes the slots up to now, in which a slot of 16 has no block."""
        while int(self.chain.state.slot) < (int(time.time()) - self.genesis_time) // self.slot_seconds:
            if int(self.chain.state.slot) % 16 == 10:
                self.chain.skip_slot()
                continue
            block = self.chain.add_block(payload=self.fill)
            self.forkchoice(hexed(block.message.body.execution_payload.block_hash))
            self.forget(int(block.message.slot))
            if self.live:
                self.publish()

    def forget(self, slot):
        """Drops old blocks with their states, of which the light client data is made already."""
        final = self.chain.state.finalized_checkpoint.root
        for root, (_, block, _) in list(self.chain.blocks.items()):
            if block.message.slot + 48 < slot and root not in (final, self.chain.genesis_root):
                del self.chain.blocks[root]

    def publish(self):
        chain = self.chain
        answers = {
            "beacon/genesis": {"data": chain.genesis()},
            "config/spec": {"data": chain.constants()},
            "beacon/light_client/finality_update": chain.versioned(chain.finality),
            "beacon/light_client/optimistic_update": chain.versioned(chain.optimistic),
        }
        for root, made in chain.bootstraps.items():
            path = "beacon/light_client/bootstrap/" + hexed(root)
            answers[path] = self.answers.get(path) or chain.versioned(made)
        for period, made in chain.updates.items():
            answers[f"update {period}"] = chain.versioned(made)
        self.answers = answers

    def serve(self):
        node = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlparse(self.path)
                path, query, answers = url.path.removeprefix("/eth/v1/"), parse_qs(url.query), node.answers
                answer = answers.get(path)
                if path == "beacon/light_client/updates":
                    first, count = int(query["start_period"][0]), int(query["count"][0])
                    answer = [answers[f"update {p}"] for p in range(first, first + min(count, 128)) if f"update {p}" in answers]
                body = json.dumps({"code": 404, "message": "not found"} if answer is None else answer).encode()
                self.send_response(404 if answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"


def main():
    node = Node(Engine(sys.argv[1], sys.argv[2]), Engine(sys.argv[3], sys.argv[2]), int(sys.argv[4]), int(sys.argv[5]))
    node.advance()
    node.publish()
    print(json.dumps({"URL": node.serve(), "Checkpoint": hexed(next(iter(node.chain.bootstraps)))}), flush=True)
    node.live = True
    while True:
        node.advance()
        node.publish()
        time.sleep(0.05)


main()
