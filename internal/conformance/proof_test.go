package conformance

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
)

// proofAnswer is the result of eth_getProof.
type proofAnswer struct {
	Address      common.Address  `json:"address"`
	AccountProof []hexutil.Bytes `json:"accountProof"`
	Balance      *hexutil.Big    `json:"balance"`
	CodeHash     common.Hash     `json:"codeHash"`
	Nonce        hexutil.Uint64  `json:"nonce"`
	StorageHash  common.Hash     `json:"storageHash"`
	StorageProof []struct {
		Key   common.Hash     `json:"key"`
		Value *hexutil.Big    `json:"value"`
		Proof []hexutil.Bytes `json:"proof"`
	} `json:"storageProof"`
}

// proofs counts the verified proofs.
type proofs struct{ accounts, noAccounts, slots, noSlots int }

func (p proofs) String() string {
	return fmt.Sprintf("proofs of %d accounts and %d slots, and that %d accounts and %d slots are not there",
		p.accounts, p.slots, p.noAccounts, p.noSlots)
}

// check verifies an answer against a state root: the account and slots in it must be those that its
// proofs prove.
func (a proofAnswer) check(root common.Hash, found *proofs) error {
	leaf, err := verify(root, a.Address[:], a.AccountProof)
	if err != nil {
		return fmt.Errorf("account proof: %w", err)
	}
	proved := types.StateAccount{Balance: new(uint256.Int)} // the hashes of an absent account are zero
	if leaf == nil {
		found.noAccounts++
	} else {
		found.accounts++
		if err := rlp.DecodeBytes(leaf, &proved); err != nil {
			return fmt.Errorf("account proof: %w", err)
		}
	}
	if a.Balance == nil || (*big.Int)(a.Balance).Cmp(proved.Balance.ToBig()) != 0 || uint64(a.Nonce) != proved.Nonce ||
		a.CodeHash != common.BytesToHash(proved.CodeHash) || a.StorageHash != proved.Root {
		return fmt.Errorf("the answer is %+v, the proof proves %+v", a, proved)
	}
	for _, slot := range a.StorageProof {
		if slot.Value == nil {
			return fmt.Errorf("slot %s: no value", slot.Key)
		}
		value := (*big.Int)(slot.Value)
		if value.Sign() == 0 {
			found.noSlots++
		} else {
			found.slots++
		}
		if err := checkSlot(proved.Root, slot.Key, value, slot.Proof); err != nil {
			return fmt.Errorf("proof of slot %s: %w", slot.Key, err)
		}
	}
	return nil
}

// checkSlot verifies that the trie with a root has a value in a slot, 0 for none.
func checkSlot(root, key common.Hash, value *big.Int, proof []hexutil.Bytes) error {
	if root == types.EmptyRootHash || root == (common.Hash{}) {
		if len(proof) != 0 || value.Sign() != 0 {
			return fmt.Errorf("%d nodes and the value %#x of an empty storage", len(proof), value)
		}
		return nil
	}
	leaf, err := verify(root, key[:], proof)
	if err != nil {
		return err
	}
	var proved []byte
	if leaf != nil {
		if err := rlp.DecodeBytes(leaf, &proved); err != nil {
			return err
		}
	}
	if new(big.Int).SetBytes(proved).Cmp(value) != 0 {
		return fmt.Errorf("the answer is %#x, the proof proves %x", value, proved)
	}
	return nil
}

// verify returns the leaf that a proof proves for a key, nil if it proves that there is none. The proof
// must not have nodes that are not on the key's path.
func verify(root common.Hash, key []byte, proof []hexutil.Bytes) ([]byte, error) {
	db := memorydb.New()
	for _, n := range proof {
		if err := db.Put(crypto.Keccak256(n), n); err != nil {
			return nil, err
		}
	}
	if db.Len() != len(proof) {
		return nil, errors.New("a node occurs twice")
	}
	return trie.VerifyProof(root, crypto.Keccak256(key), db)
}

// compare checks that an answer matches the request and the expected account.
func (a proofAnswer) compare(address common.Address, keys []common.Hash, want *account) error {
	if a.Address != address || (*big.Int)(a.Balance).Cmp(want.balance) != 0 || uint64(a.Nonce) != want.nonce {
		return fmt.Errorf("account %s has nonce %d and balance %s, expected nonce %d and balance %s of %s",
			a.Address, a.Nonce, (*big.Int)(a.Balance), want.nonce, want.balance, address)
	}
	if want.codeHash != nil && a.CodeHash != *want.codeHash || want.storage != nil && a.StorageHash != *want.storage {
		return fmt.Errorf("code %s and storage %s, expected %s and %s", a.CodeHash, a.StorageHash, want.codeHash, want.storage)
	}
	if len(a.StorageProof) != len(keys) {
		return fmt.Errorf("%d storage proofs for %d keys", len(a.StorageProof), len(keys))
	}
	for i, slot := range a.StorageProof {
		if slot.Key != keys[i] {
			return fmt.Errorf("storage proof %d is of slot %s, expected %s", i, slot.Key, keys[i])
		}
		if expected := want.slots[keys[i]].Big(); (*big.Int)(slot.Value).Cmp(expected) != 0 {
			return fmt.Errorf("slot %s is %#x, expected %#x", keys[i], (*big.Int)(slot.Value), expected)
		}
	}
	return nil
}
