package wire

import (
	"fmt"

	"ashlar/starknet"
)

// Events reads the events of a receipt.
func (r *Reader) Events() ([]starknet.Event, error) {
	var events []starknet.Event
	err := r.Array(func(int) error {
		event, err := r.event()
		events = append(events, event)
		return err
	})
	return events, err
}

func (r *Reader) event() (e starknet.Event, err error) {
	err = r.Object(func(name string) (err error) {
		switch name {
		case "from_address":
			e.From, err = r.Felt()
		case "keys":
			e.Keys, err = r.Felts()
		case "data":
			e.Data, err = r.Felts()
		default:
			err = r.Skip()
		}
		return err
	}, "from_address", "keys", "data")
	return e, err
}

// Messages reads the messages to L1 of a receipt.
func (r *Reader) Messages() ([]starknet.Message, error) {
	var messages []starknet.Message
	err := r.Array(func(int) error {
		message, err := r.message()
		messages = append(messages, message)
		return err
	})
	return messages, err
}

func (r *Reader) message() (m starknet.Message, err error) {
	err = r.Object(func(name string) (err error) {
		switch name {
		case "from_address":
			m.From, err = r.Felt()
		case "to_address":
			m.To, err = r.Felt()
		case "payload":
			m.Payload, err = r.Felts()
		default:
			err = r.Skip()
		}
		return err
	}, "from_address", "to_address", "payload")
	return m, err
}

// gasPrice reads a price of gas in both tokens.
func (r *Reader) gasPrice() (p starknet.GasPrice, err error) {
	err = r.Object(func(name string) (err error) {
		switch name {
		case "price_in_wei":
			p.Wei, err = r.Felt()
		case "price_in_fri":
			p.Fri, err = r.Felt()
		default:
			err = r.Skip()
		}
		return err
	}, "price_in_wei", "price_in_fri")
	return p, err
}

// Gas reads the gas used of each kind.
func (r *Reader) Gas() (g starknet.GasUsed, err error) {
	err = r.Object(func(name string) (err error) {
		switch name {
		case "l1_gas":
			g.L1, err = r.Uint64()
		case "l1_data_gas":
			g.L1Data, err = r.Uint64()
		case "l2_gas":
			g.L2, err = r.Uint64()
		default:
			err = r.Skip()
		}
		return err
	})
	return g, err
}

// Header reads a member of a block that gateways and nodes encode in the same way. known is
// false for any other member.
func (r *Reader) Header(name string, h *starknet.Header) (known bool, err error) {
	c := &h.Commitments
	switch name {
	case "block_hash":
		h.Hash, err = r.Felt()
	case "block_number":
		h.Number, err = r.Uint64()
	case "timestamp":
		h.Timestamp, err = r.Uint64()
	case "status":
		h.Status, err = r.status()
	case "sequencer_address":
		h.Sequencer, err = r.Felt()
	case "starknet_version":
		h.Version, err = r.version()
	case "l1_gas_price":
		h.L1GasPrice, err = r.gasPrice()
	case "l1_data_gas_price":
		h.L1DataGasPrice, err = r.gasPrice()
	case "l2_gas_price":
		h.L2GasPrice, err = r.gasPrice()
	case "l1_da_mode":
		h.L1DataMode, err = r.l1DataMode()
	case "transaction_commitment":
		c.Transactions, err = r.Felt()
	case "event_commitment":
		c.Events, err = r.Felt()
	case "receipt_commitment":
		c.Receipts, err = r.Felt()
	case "state_diff_commitment":
		c.StateDiff, err = r.Felt()
	case "state_diff_length":
		c.StateDiffLength, err = r.Uint64()
	default:
		return false, nil
	}
	return true, err
}

// Transaction reads a member of a transaction that gateways and nodes encode in the same way,
// and skips all others.
func (r *Reader) Transaction(name string, t *starknet.Transaction) (err error) {
	switch name {
	case "transaction_hash":
		t.Hash, err = r.Felt()
	case "type":
		t.Kind, err = r.Kind()
	case "version":
		t.Version, err = r.HexUint64()
	case "signature":
		t.Signature, err = r.Felts()
	default:
		err = r.Skip()
	}
	return err
}

// status reads the status of a block, which must be accepted.
func (r *Reader) status() (starknet.Status, error) {
	return choice(r, map[string]starknet.Status{
		"ACCEPTED_ON_L2": starknet.AcceptedOnL2,
		"ACCEPTED_ON_L1": starknet.AcceptedOnL1,
	}, "ACCEPTED_ON_L2 or ACCEPTED_ON_L1")
}

// l1DataMode reads where a block's state diff is published.
func (r *Reader) l1DataMode() (starknet.L1DataMode, error) {
	return choice(r, map[string]starknet.L1DataMode{
		"CALLDATA": starknet.Calldata,
		"BLOB":     starknet.Blob,
	}, "CALLDATA or BLOB")
}

// Kind reads the kind of a transaction.
func (r *Reader) Kind() (starknet.TransactionKind, error) {
	return choice(r, map[string]starknet.TransactionKind{
		"INVOKE":          starknet.Invoke,
		"INVOKE_FUNCTION": starknet.Invoke, // name used by feeder gateways
		"DECLARE":         starknet.Declare,
		"DEPLOY":          starknet.Deploy,
		"DEPLOY_ACCOUNT":  starknet.DeployAccount,
		"L1_HANDLER":      starknet.L1Handler,
	}, "INVOKE, DECLARE, DEPLOY, DEPLOY_ACCOUNT or L1_HANDLER")
}

// Reverted reads whether a transaction was reverted.
func (r *Reader) Reverted() (bool, error) {
	return choice(r, map[string]bool{"SUCCEEDED": false, "REVERTED": true}, "SUCCEEDED or REVERTED")
}

// choice reads a string that must be a key of values. words lists the keys for the error.
func choice[T any](r *Reader, values map[string]T, words string) (T, error) {
	text, err := r.Text()
	if err != nil {
		return *new(T), err
	}
	value, ok := values[text]
	if !ok {
		return value, r.Fail(fmt.Errorf("found %.80q, expected %s", text, words))
	}
	return value, nil
}

// version reads the Starknet version of a block. Block hashes contain it as a short string, so
// it must fit in a felt.
func (r *Reader) version() (string, error) {
	const most = starknet.FeltBytes - 1
	text, err := r.Text()
	if err == nil && len(text) > most {
		err = r.Fail(fmt.Errorf("found the string %.80q of %d bytes, expected a version of at most %d", text, len(text), most))
	}
	return text, err
}
