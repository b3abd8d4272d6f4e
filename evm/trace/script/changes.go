package script

import (
	"context"
	"encoding/binary"
	"errors"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// stepBytes is the length of a step of a block in the name of what is read.
const stepBytes = 4

// remoteChanges are the stored changes of a block that the server has. They answer for every account and slot, also for those
// that have not changed, so that each takes one read. It implements execute.StoredChanges.
type remoteChanges struct{ *remote }

// Changes implements execute.StoredBlock.
func (r *remote) Changes(context.Context) (execute.StoredChanges, error) {
	reply, err := r.ask(readHasChanges)
	if len(reply) == 0 || err != nil {
		return nil, err
	}
	return remoteChanges{r}, nil
}

// Account implements execute.StoredChanges.
func (r remoteChanges) Account(_ context.Context, address common.Hash, step int) (*types.StateAccount, bool, error) {
	reply, err := r.ask(readChangedAccount, binary.BigEndian.AppendUint32(nil, uint32(step)), address[:], r.name(address))
	if len(reply) == 0 || err != nil {
		return nil, true, err
	}
	account := new(types.StateAccount)
	return account, true, encoded(reply).into(account)
}

// Slot implements execute.StoredChanges.
func (r remoteChanges) Slot(_ context.Context, address, slot common.Hash, step int) (common.Hash, bool, error) {
	reply, err := r.ask(readChangedSlot, binary.BigEndian.AppendUint32(nil, uint32(step)), address[:], slot[:], r.name(slot))
	return common.BytesToHash(reply), true, err
}

// Code implements execute.StoredChanges.
func (r remoteChanges) Code(_ context.Context, hash common.Hash) ([]byte, bool, error) {
	reply, err := r.ask(readChangedCode, hash[:])
	if len(reply) == 0 || err != nil {
		return nil, false, err
	}
	return reply[1:], true, nil
}

// errNoChanges means that a worker reads changes which it was told are not stored.
var errNoChanges = errors.New("worker reads changes that are not stored")

// readChanges reads what a worker asks for of the stored changes.
func (t *Traces) readChanges(k kind, key []byte) ([]byte, error) {
	if k == readHasChanges {
		var err error
		if t.changes, err = t.question.Options.Stored.Changes(t.ctx); t.changes == nil || err != nil {
			return nil, err
		}
		return []byte{1}, nil
	}
	if t.changes == nil {
		return nil, errNoChanges
	}
	if k == readChangedCode {
		code, ok, err := t.changes.Code(t.ctx, common.Hash(key))
		if !ok || err != nil {
			return nil, err
		}
		return append([]byte{1}, code...), nil
	}
	step, key := int(binary.BigEndian.Uint32(key)), key[stepBytes:]
	if k == readChangedAccount {
		account, changed, err := t.changes.Account(t.ctx, common.Hash(key[:32]), step)
		switch {
		case err != nil:
			return nil, err
		case !changed:
			return t.read(readAccount, key)
		case account == nil:
			return nil, nil
		}
		return encode(account)
	}
	value, changed, err := t.changes.Slot(t.ctx, common.Hash(key[:32]), common.Hash(key[32:64]), step)
	if err == nil && !changed {
		return t.read(readSlot, key)
	}
	return value[:], err
}

// ofChanges reports whether a read is of the stored changes.
func (k kind) ofChanges() bool {
	return k == readHasChanges || k == readChangedAccount || k == readChangedSlot || k == readChangedCode
}
