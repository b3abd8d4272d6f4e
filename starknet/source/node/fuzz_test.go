package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/internal/memory"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/wire"
)

// FuzzAnswer searches for responses that make the reader panic, allocate out of proportion, or accept
// another block than the requested one.
func FuzzAnswer(f *testing.F) {
	block := makeChain(nil, 5, 1, 1)[0]
	for spec := 6; spec <= 10; spec += 4 {
		text, err := json.Marshal(nodetest.EncodeBlock(block, spec, false))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(fmt.Appendf(nil, `{"jsonrpc":"2.0","result":%s,"id":1}`, text))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","error":{"code":24,"message":"Block not found"},"id":1}`))
	f.Add([]byte(`{"result":{"transactions":[{"transaction":{},"receipt":{}}]},"id":1}`))
	f.Add([]byte(`{"result":{"transactions":[{"receipt":{"events":[{"keys":["0x1","0x2","0x3"`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		// For each byte a felt in a growing list, with the garbage of reading it.
		const decoded = 400
		memory.Within(t, memory.Slack+decoded*len(answer), func() { checkAnswer(t, answer) })
	})
}

func checkAnswer(t *testing.T, answer []byte) {
	var block *starknet.Block
	e := envelope{id: 1, in: wire.NewReader(bytes.NewReader(answer), 1<<20)}
	err := e.read(func(in *wire.Reader) (err error) {
		block, err = readBlock(in, 5)
		return err
	})
	if err == nil && (block == nil || block.Number != 5 || block.Status == 0) {
		t.Errorf("%s was read as %+v", answer, block)
	}
}
