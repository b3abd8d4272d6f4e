package api

import (
	"math/rand/v2"
	"testing"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestBloomMaker adds logs whose values come again, and collide in what is
// remembered, and compares with go-ethereum.
func TestBloomMaker(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var maker bloomMaker
	for range 500 {
		address := common.Address{0: byte(rng.IntN(3)), 19: byte(rng.IntN(40))}
		whole := &types.Log{Address: address}
		log := archive.Log{Address: address}
		for range rng.IntN(5) {
			topic := common.Hash{12: byte(rng.IntN(2)), 31: byte(rng.IntN(40))}
			whole.Topics = append(whole.Topics, topic)
			log.Topics = append(log.Topics, topic[:]...)
		}
		var got types.Bloom
		maker.add(&got, &log)
		if want := types.CreateBloom(&types.Receipt{Logs: []*types.Log{whole}}); got != want {
			t.Fatalf("bloom of %+v: %x, want %x", whole, got, want)
		}
	}
}
