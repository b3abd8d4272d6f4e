"""Writes what a light client is given on a chain, and what the specification makes of it.

    vectors.py EPOCHS FORK=EPOCH...
"""

import json
import sys

from chain import Chain, to_json

from eth_consensus_specs.test.helpers.light_client import (
    upgrade_lc_bootstrap_to_new_spec,
    upgrade_lc_update_to_new_spec,
)
from eth_consensus_specs.utils import bls


def main():
    epochs = int(sys.argv[1])
    chain = Chain({name: int(epoch) for name, _, epoch in (arg.partition("=") for arg in sys.argv[2:])})
    newest = list(chain.phases.values())[-1]
    store, steps, bootstrap = None, [], None
    process = {"finality": "process_light_client_finality_update", "update": "process_light_client_update"}
    trusted = None
    for _ in range(epochs * int(newest.SLOTS_PER_EPOCH)):
        slot = int(chain.state.slot) + 1
        if slot % 7 == 3:  # some slots have no block
            chain.skip_slot()
            continue
        block = chain.add_block()
        if trusted is None and slot % 8 == 0:
            trusted = block.message.hash_tree_root()
            spec, bootstrap = chain._bootstrap(trusted)
            upgraded = upgrade_lc_bootstrap_to_new_spec(spec, newest, bootstrap, chain.phases)
            store = newest.initialize_light_client_store(trusted, upgraded)
            bootstrap = {"version": spec.fork, "data": to_json(bootstrap)}
            continue
        if store is None:
            continue
        for kind in steps_of(slot):
            spec, data = chain.finality if kind == "finality" else chain.updates.get(chain.updates and max(chain.updates), (None, None))
            if data is None:
                continue
            update = data
            if kind == "finality":  # as an update without the next committee
                update = spec.LightClientUpdate(
                    attested_header=data.attested_header, finalized_header=data.finalized_header, finality_branch=data.finality_branch,
                    sync_aggregate=data.sync_aggregate, signature_slot=data.signature_slot)
            upgraded = upgrade_lc_update_to_new_spec(spec, newest, update, chain.phases)
            bls.bls_active = True
            accepted = True
            try:
                newest.process_light_client_update(store, upgraded, newest.Slot(slot), chain.genesis_validators_root)
            except (AssertionError, IndexError):
                accepted = False
            bls.bls_active = False
            steps.append({
                "slot": str(slot), "version": spec.fork, "data": to_json(data), "accepted": accepted,
                "finalized": "0x" + store.finalized_header.beacon.hash_tree_root().hex(),
                "head": "0x" + store.optimistic_header.beacon.hash_tree_root().hex(),
                "next": newest.is_next_sync_committee_known(store),
            })
    json.dump({
        "spec": chain.constants(), "genesis": chain.genesis(), "trusted": "0x" + trusted.hex(),
        "bootstrap": bootstrap, "steps": steps,
    }, sys.stdout)


def steps_of(slot):
    """An update with the next committee comes once in an epoch, as a light client asks for it."""
    return ["update", "finality"] if slot % 8 == 6 else ["finality"]


main()
