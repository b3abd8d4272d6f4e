package feeder

import (
	"ashlar/starknet"
	"ashlar/starknet/source/wire"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// readConsumedMessage reads the L1 message that a transaction consumes, and returns its hash as
// computed on L1: over sender, receiver, nonce, selector, payload length and payload. Early
// messages have no nonce and are hashed without it.
func readConsumedMessage(in *wire.Reader) (common.Hash, error) {
	var from, to, selector starknet.Felt
	var nonce, payload []starknet.Felt
	err := in.Object(func(name string) (err error) {
		switch name {
		case "from_address":
			from, err = in.Felt()
		case "to_address":
			to, err = in.Felt()
		case "selector":
			selector, err = in.Felt()
		case "nonce":
			nonce = make([]starknet.Felt, 1)
			nonce[0], err = in.Felt()
		case "payload":
			payload, err = in.Felts()
		default:
			err = in.Skip()
		}
		return err
	}, "from_address", "to_address", "selector", "payload")
	if err != nil {
		return common.Hash{}, err
	}
	var words []byte
	for _, part := range [][]starknet.Felt{{from, to}, nonce, {selector, starknet.FeltOf(uint64(len(payload)))}, payload} {
		for i := range part {
			words = append(words, part[i][:]...)
		}
	}
	return crypto.Keccak256Hash(words), nil
}
