package proven

import (
	"context"
	"encoding/json"
	"fmt"

	"ashlar/evm"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// slotsAtOnce is the most slots of one proof, geth's limit.
const slotsAtOnce = 1024

// Want is an account that is about to be read.
type Want struct {
	Address common.Address
	Slots   []common.Hash
	Code    bool // as well, if it is not known
}

// Prefetch fetches what is not known of some accounts, in one round unless that is very much.
func (s *State) Prefetch(ctx context.Context, wants []Want) error {
	header, err := s.at(ctx)
	if err != nil {
		return err
	}
	var missing []Want
	for _, want := range wants {
		if lacks, ok := s.lacks(header.Root, want); ok {
			missing = append(missing, lacks)
		}
	}
	return s.fetch(ctx, header, missing)
}

// lacks returns what is not known of an account; false if all is.
func (s *State) lacks(root common.Hash, want Want) (Want, bool) {
	key := s.remote.nameAddress(want.Address)
	found, err := account(s.known, root, key)
	if isMissing(err) {
		for _, slot := range want.Slots {
			s.remote.nameSlot(slot)
		}
		return want, true
	}
	lacks := Want{Address: want.Address}
	if err != nil || found == nil {
		return lacks, false // an error recurs where the account is read
	}
	for _, slot := range want.Slots {
		if _, err := word(s.known, found.Root, s.remote.nameSlot(slot)); isMissing(err) {
			lacks.Slots = append(lacks.Slots, slot)
		}
	}
	if want.Code && !isEmptyCode(found) {
		_, known := s.code(common.BytesToHash(found.CodeHash))
		lacks.Code = !known
	}
	return lacks, len(lacks.Slots) > 0 || lacks.Code
}

// fetch fetches accounts with proofs, and puts what they prove into the caches.
func (s *State) fetch(ctx context.Context, header *types.Header, wants []Want) error {
	var calls []upstream.Call
	for _, want := range split(wants) {
		proof, err := s.proofCall(header, want)
		if err != nil {
			return err
		}
		calls = append(calls, proof)
		if want.Code {
			code, err := s.codeCall(header, want.Address)
			if err != nil {
				return err
			}
			calls = append(calls, code)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	for i, answer := range s.remote.nodes.AskAll(ctx, calls) {
		err := answer.Err
		if err == nil {
			err = calls[i].Check(answer.Result) // it may have been checked for somebody else
		}
		if err != nil && calls[i].Method != methodCode { // a code is fetched again when it is read
			return fmt.Errorf("prove the state of block %d: %s: %w", header.Number, calls[i].Method, err)
		}
	}
	return ctx.Err()
}

const methodCode = "eth_getCode"

// proofCall returns the call that proves an account and its slots.
func (s *State) proofCall(header *types.Header, want Want) (upstream.Call, error) {
	slots := append([]common.Hash{}, want.Slots...)
	q := newQuestion(upstream.States, header.Number.Uint64(), "eth_getProof", want.Address, slots, blockHash{header.Hash()})
	q.Check = func(answer json.RawMessage) error { return fault(s.takeProof(header, want, answer)) }
	return q.Call, q.failed
}

// codeCall returns the call for the code of an account. The code of an account that is not
// known yet is kept by its own hash, under which only the right one is looked for.
func (s *State) codeCall(header *types.Header, address common.Address) (upstream.Call, error) {
	q := newQuestion(upstream.States, header.Number.Uint64(), methodCode, address, blockHash{header.Hash()})
	q.Check = func(answer json.RawMessage) error {
		code, err := decode[hexutil.Bytes](methodCode, answer)
		if err != nil {
			return fault(err)
		}
		hash := crypto.Keccak256Hash(code)
		holder, err := account(s.known, header.Root, evm.HashAddress(address))
		if err == nil && holder != nil && common.BytesToHash(holder.CodeHash) != hash {
			return fault(lie(fmt.Sprintf("eth_getCode of %x in block %d", address, header.Number), "its hash is %x, expected %x", hash, holder.CodeHash))
		}
		s.remote.codes.Add(hash, code)
		return nil
	}
	return q.Call, q.failed
}

// fetchCode fetches a code by its hash, from an account that has it.
func (s *State) fetchCode(ctx context.Context, header *types.Header, holder common.Address, hash common.Hash) ([]byte, error) {
	q := newQuestion(upstream.States, header.Number.Uint64(), methodCode, holder, blockHash{header.Hash()})
	return ask(ctx, s.remote, q, func(answer json.RawMessage) ([]byte, error) {
		code, err := decode[hexutil.Bytes](methodCode, answer)
		if got := crypto.Keccak256Hash(code); err == nil && got != hash {
			return nil, lie(fmt.Sprintf("eth_getCode of %x in block %d", holder, header.Number), "its hash is %x, expected %x", got, hash)
		}
		return code, err
	})
}

// split splits what is wanted of accounts with very many slots.
func split(wants []Want) (all []Want) {
	for _, want := range wants {
		for len(want.Slots) > slotsAtOnce {
			all = append(all, Want{Address: want.Address, Slots: want.Slots[:slotsAtOnce]})
			want.Slots = want.Slots[slotsAtOnce:]
		}
		all = append(all, want)
	}
	return all
}

// proofAnswer is what is used of an answer to eth_getProof. The values are not: the nodes
// hold them.
type proofAnswer struct {
	AccountProof []hexutil.Bytes `json:"accountProof"`
	StorageProof []struct {
		Proof []hexutil.Bytes `json:"proof"`
	} `json:"storageProof"`
}

// takeProof puts the nodes of a proof into the cache. It returns a lie unless the account
// and its slots are proven.
func (s *State) takeProof(header *types.Header, want Want, answer json.RawMessage) error {
	what := fmt.Sprintf("eth_getProof of %x in block %d", want.Address, header.Number)
	decoded, err := decode[proofAnswer](what, answer)
	if err != nil {
		return err
	}
	p := proof{state: s, nodes: make(map[common.Hash][]byte), used: make(map[common.Hash][]byte)}
	p.add(&decoded)
	found, err := account(p.known, header.Root, evm.HashAddress(want.Address))
	if err != nil {
		return lie(what, "%w", err)
	}
	if found != nil { // otherwise its absence is proven
		for _, slot := range want.Slots {
			if _, err := word(p.known, found.Root, evm.HashSlot(slot)); err != nil {
				return lie(what, "slot %x: %w", slot, err)
			}
		}
	}
	for hash, blob := range p.used {
		s.remote.tries.Add(hash, blob)
	}
	return nil
}

// proof is what the answer of a node proves.
type proof struct {
	state *State
	nodes map[common.Hash][]byte // that the answer holds
	used  map[common.Hash][]byte // that lead to what was asked for
}

func (p *proof) add(answer *proofAnswer) {
	put := func(blobs []hexutil.Bytes) {
		for _, blob := range blobs {
			p.nodes[crypto.Keccak256Hash(blob)] = blob
		}
	}
	put(answer.AccountProof)
	for _, slot := range answer.StorageProof {
		put(slot.Proof)
	}
}

// known returns a node of the answer, or one that was known before.
func (p *proof) known(hash common.Hash) ([]byte, bool) {
	if blob, ok := p.nodes[hash]; ok {
		p.used[hash] = blob
		return blob, true
	}
	return p.state.known(hash)
}
