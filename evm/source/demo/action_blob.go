package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// Blobs are few, except in storms, when every block is full of them. On average
// they stay below the target, so that their price cannot run away.
const (
	blobStormBlocks = 20
	blobStormPeriod = 5 // one stretch of blobStormBlocks in so many is a storm
	calmBlobs       = 4 // a block's most blobs outside storms
	blobsPerTx      = 6 // by EIP-7594
	blobsPerBlock   = 9 // by Prague's schedule

	versionKZG = 0x01 // first byte of a blob's versioned hash
)

// postBlobs sends blobs, or calls the emitter when the block has its share.
func (d *draft) postBlobs() {
	limit := calmBlobs
	if d.storm {
		limit = blobsPerBlock
	}
	count := min(limit-d.blobs, blobsPerTx)
	if count <= 0 {
		d.emit()
		return
	}
	if !d.storm {
		count = 1 + d.rng.IntN(count)
	}
	hashes := make([]common.Hash, count)
	for i := range hashes {
		hashes[i] = d.word()
		hashes[i][0] = versionKZG
	}
	c := call{from: d.someone(), to: &d.network.emitter, gas: 60_000, input: d.input("Emitter", "rare", hashes[0])}
	if d.rng.IntN(2) == 0 {
		to := d.holder()
		c.to, c.input, c.value = &to, d.bytes(32), big.NewInt(1)
	}
	d.sendBlobs(c, hashes)
}
