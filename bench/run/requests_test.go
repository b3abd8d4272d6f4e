package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"ashlar/internal/sample"
)

// Each section has request files of its own, because sections send different requests.
func TestSectionsDoNotShareFiles(t *testing.T) {
	chain := &sample.Chain{
		Blocks: make([]sample.Block, 1001), Reverted: []int{0},
		Topics: [4][]common.Hash{2: {{1}}}, Slots: []sample.Slot{{Address: common.Address{1}, Key: common.Hash{2}}},
	}
	o := options{work: t.TempDir(), requests: 200}
	written := make(map[string][]requestFile)
	for name, s := range sections() {
		files, err := writeRequests(chain, o, s, regexp.MustCompile("^eth_getStorageAt, any block$"), nil)
		if err != nil {
			t.Fatal(err)
		}
		written[name] = files
	}
	spans := sections()["ages"].spans
	for name, files := range written {
		for i, file := range files {
			least, most := uint64(1), uint64(1000)
			if name == "ages" {
				least, most = uint64(spans[i].first*1000), uint64(spans[i].last*1000)
			}
			lowest, highest := askedBlocks(t, file)
			wide := highest-lowest > (most-least)/2 // practically certain with 200 requests
			if lowest < least || highest > most || !wide {
				t.Errorf("%s: requests for blocks %d to %d, want %d to %d", file.path, lowest, highest, least, most)
			}
		}
	}
}

// askedBlocks returns the lowest and the highest block that a file's requests are about.
func askedBlocks(t *testing.T, file requestFile) (lowest, highest uint64) {
	raw, err := os.ReadFile(file.path)
	if err != nil {
		t.Fatal(err)
	}
	lowest = 1 << 63
	for line := range bytes.SplitSeq(bytes.TrimSpace(raw), []byte("\n")) {
		if line[0] != '[' {
			line = append(append([]byte{'['}, line...), ']')
		}
		var calls []struct{ Params [3]string }
		if err := json.Unmarshal(line, &calls); err != nil {
			t.Fatal(err)
		}
		for _, call := range calls {
			number, err := hexutil.DecodeUint64(call.Params[2])
			if err != nil {
				t.Fatal(err)
			}
			lowest, highest = min(lowest, number), max(highest, number)
		}
	}
	return lowest, highest
}
