"""A beacon chain that is made by the state transition of the executable specification.

The specification (eth-consensus-specs) applies every block, signs as the sync committee, and
makes the data for light clients. The signatures of sync committees are real; those of proposers
and attesters, which light clients do not see, are left out.
"""

import sys
from importlib import import_module
from types import ModuleType

import eth_consensus_specs

# The package imports a module of its own by its path in the repository (1.7.0a13).
for name in ("tests", "tests.core", "tests.core.pyspec"):
    sys.modules.setdefault(name, ModuleType(name)).__path__ = []
sys.modules.setdefault("tests.core.pyspec.eth_consensus_specs", eth_consensus_specs)

from eth_consensus_specs.debug.encode import encode
from eth_consensus_specs.test.helpers.attestations import state_transition_with_full_block
from eth_consensus_specs.test.helpers.block import build_empty_block_for_next_slot
from eth_consensus_specs.test.helpers.fork_transition import do_fork
from eth_consensus_specs.test.helpers.genesis import create_genesis_state, create_signed_genesis_block
from eth_consensus_specs.test.helpers.light_client import get_sync_aggregate
from eth_consensus_specs.utils import bls

FORKS = ["altair", "bellatrix", "capella", "deneb", "electra", "fulu", "gloas"]
NEVER = 2**64 - 1


def to_json(value):
    """The value as beacon APIs write it: all numbers are texts."""

    def texts(v):
        if isinstance(v, dict):
            return {name: texts(item) for name, item in v.items()}
        if isinstance(v, list):
            return [texts(item) for item in v]
        return str(v) if isinstance(v, int) else v

    return texts(encode(value))


class Chain:
    """A chain with forks at given epochs, such as {"deneb": 0, "electra": 2}."""

    def __init__(self, schedule, validators=16, genesis_time=0, slot_ms=6000, genesis_execution=None):
        first = [name for name in FORKS if schedule.get(name) == 0][-1]
        self.epochs = {name: 0 if FORKS.index(name) <= FORKS.index(first) else schedule.get(name, NEVER) for name in FORKS}
        self.phases = {}
        for name in FORKS:
            if self.epochs[name] == NEVER:
                continue
            spec = import_module(f"eth_consensus_specs.{name}.minimal")
            values = {f"{fork.upper()}_FORK_EPOCH": spec.Epoch(epoch) for fork, epoch in self.epochs.items()}
            values |= {"SLOT_DURATION_MS": spec.Uint64(slot_ms)}
            spec.config = spec.config._replace(**{n: v for n, v in values.items() if hasattr(spec.config, n)})
            self.phases[name] = spec
        self.spec = self.phases[first]
        self.slot_ms = slot_ms
        bls.bls_active = False
        spec = self.spec
        state = create_genesis_state(spec, [spec.MAX_EFFECTIVE_BALANCE] * validators, spec.MAX_EFFECTIVE_BALANCE)
        state.genesis_time = genesis_time
        if genesis_execution:
            for name, value in genesis_execution.items():
                setattr(state.latest_execution_payload_header, name, value)
        self.state = state
        genesis = create_signed_genesis_block(spec, state)
        self.genesis_validators_root = state.genesis_validators_root
        self.genesis_root = genesis.message.hash_tree_root()
        self.blocks = {self.genesis_root: (spec, genesis, state.copy())}
        self.head = self.genesis_root
        self.updates = {}  # period -> update, spec
        self.finality = self.optimistic = None
        self.bootstraps = {}  # root -> spec, data

    def fork_at(self, slot):
        epoch = slot // self.spec.SLOTS_PER_EPOCH
        return [name for name in FORKS if self.epochs[name] <= epoch][-1]

    def add_block(self, payload=None, participants=None):
        """Adds a block for the next slot. payload fills in a block's execution payload."""
        slot = self.state.slot + 1
        name = self.fork_at(slot)
        bls.bls_active = True
        aggregate, _ = get_sync_aggregate(self.spec, self.state, num_participants=participants, phases=self.phases)
        bls.bls_active = False
        if self.phases[name] is not self.spec:
            spec = self.phases[name]
            self.state, block = do_fork(self.state, self.spec, spec, slot // spec.SLOTS_PER_EPOCH, sync_aggregate=aggregate)
            self.spec = spec
        else:
            block = build_empty_block_for_next_slot(self.spec, self.state)
            if payload:
                payload(self.spec, block)
            block = state_transition_with_full_block(self.spec, self.state, True, False, sync_aggregate=aggregate, block=block)
        root = block.message.hash_tree_root()
        self.blocks[root] = (self.spec, block, self.state.copy())
        self.head = root
        self._light_client(block)
        return block

    def skip_slot(self):
        """Leaves a slot without a block."""
        slot = self.state.slot + 1
        spec = self.phases[self.fork_at(slot)]
        if spec is self.spec:
            spec.process_slots(self.state, slot)
        else:
            self.state, _ = do_fork(self.state, self.spec, spec, slot // spec.SLOTS_PER_EPOCH, with_block=False)
            self.spec = spec

    def _light_client(self, block):
        _, _, state = self.blocks[self.head]
        spec, attested, attested_state = self.blocks[block.message.parent_root]
        if attested.message.slot == 0 or sum(block.message.body.sync_aggregate.sync_committee_bits) == 0:
            return
        final = attested_state.finalized_checkpoint.root
        _, finalized, _ = self.blocks[self.genesis_root if final == spec.Root() else final]
        update = spec.create_light_client_update(state, block, attested_state, attested, finalized)
        self.optimistic = (spec, spec.create_light_client_optimistic_update(update))
        self.finality = (spec, spec.create_light_client_finality_update(update))
        period = spec.compute_sync_committee_period_at_slot(attested.message.slot)
        if period == spec.compute_sync_committee_period_at_slot(block.message.slot):
            best = self.updates.get(period)
            if best is None or best[0] is not spec or spec.is_better_update(update, best[1]):
                self.updates[period] = (spec, update)
        # Nodes keep the bootstraps of finalized checkpoints.
        if final != spec.Root() and final not in self.bootstraps:
            self.bootstraps[final] = self._bootstrap(final)

    def _bootstrap(self, root):
        spec, block, state = self.blocks[root]
        return spec, spec.create_light_client_bootstrap(state, block)

    def version(self, spec):
        return spec.fork

    def versioned(self, made):
        spec, data = made
        return {"version": spec.fork, "data": to_json(data)}

    def constants(self):
        """What /eth/v1/config/spec has."""
        newest = list(self.phases.values())[-1]
        all = {
            "PRESET_BASE": "minimal",
            "SLOTS_PER_EPOCH": str(newest.SLOTS_PER_EPOCH),
            "SLOT_DURATION_MS": str(self.slot_ms),
            "GENESIS_FORK_VERSION": "0x" + newest.config.GENESIS_FORK_VERSION.hex(),
        }
        for name, spec in self.phases.items():
            all[f"{name.upper()}_FORK_VERSION"] = "0x" + getattr(spec.config, f"{name.upper()}_FORK_VERSION").hex()
            all[f"{name.upper()}_FORK_EPOCH"] = str(self.epochs[name])
        all |= {"HEZE_FORK_VERSION": "0x08000001", "HEZE_FORK_EPOCH": str(NEVER), "BLOB_SCHEDULE": []}
        return all

    def genesis(self):
        return {
            "genesis_time": str(self.blocks[self.genesis_root][2].genesis_time),
            "genesis_validators_root": "0x" + self.genesis_validators_root.hex(),
            "genesis_fork_version": self.constants()["GENESIS_FORK_VERSION"],
        }
