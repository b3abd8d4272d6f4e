package feeder

import (
	"ashlar/starknet"
	"ashlar/starknet/source/wire"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// readConsumedMessage reads the message from L1 that a transaction takes in, and
// returns the hash under which L1 knows it: that of its sender, its receiver, its
// nonce, the function that it calls, and the length and the words of its payload.
// Messages of a time before there were nonces are hashed without.
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
