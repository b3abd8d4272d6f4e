package execute

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// depositEvent is the topic of the deposit contract's DepositEvent.
var depositEvent = crypto.Keccak256Hash([]byte("DepositEvent(bytes,bytes,bytes,bytes,bytes)"))

// depositWords are the words that the data of a DepositEvent must hold, by their
// offset: where each of the five fields begins, and how long each field is
// (EIP-6110). go-ethereum checks the length of the data only.
var depositWords = map[int]uint64{
	0: 160, 32: 256, 64: 320, 96: 384, 128: 512, // offsets
	160: 48, 256: 32, 320: 8, 384: 96, 512: 8, // lengths
}

// depositBytes is the length of the data of a DepositEvent.
const depositBytes = 576

// checkDeposits checks the layout of the deposit contract's events. Events with
// another layout make the block invalid.
func checkDeposits(config *params.ChainConfig, logs []*types.Log) error {
	for _, log := range logs {
		if log.Address != config.DepositContractAddress || len(log.Topics) == 0 || log.Topics[0] != depositEvent {
			continue
		}
		if len(log.Data) != depositBytes {
			return fmt.Errorf("deposit event: %d bytes of data (want %d)", len(log.Data), depositBytes)
		}
		for offset, want := range depositWords {
			word := log.Data[offset : offset+common.HashLength]
			if expected := uint256.NewInt(want).Bytes32(); !bytes.Equal(word, expected[:]) {
				return fmt.Errorf("deposit event: %#x at offset %d (want %d)", word, offset, want)
			}
		}
	}
	return nil
}
