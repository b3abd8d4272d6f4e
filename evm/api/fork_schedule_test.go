package api

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// A BPO fork that comes after Amsterdam is neither the next fork before it, nor left out after
// it, and its schedule holds from its time on.
func TestForksAroundAmsterdam(t *testing.T) {
	at := func(time uint64) *uint64 { return &time }
	config := *params.MergedTestChainConfig
	config.OsakaTime, config.BPO1Time, config.BPO2Time = at(0), at(100), nil
	config.AmsterdamTime, config.BPO3Time, config.BogotaTime, config.UBTTime = at(200), at(300), nil, nil
	first, third := &params.BlobConfig{Target: 9, Max: 12, UpdateFraction: 1}, &params.BlobConfig{Target: 15, Max: 20, UpdateFraction: 1}
	config.BlobScheduleConfig = &params.BlobScheduleConfig{
		Cancun: params.DefaultCancunBlobConfig, Prague: params.DefaultPragueBlobConfig, BPO1: first, BPO3: third,
	}
	genesis := &types.Header{Number: new(big.Int), Difficulty: new(big.Int)}
	for _, test := range []struct {
		head                uint64
		current, next, last uint64 // 0: none, or the genesis
		blobs, nextBlobs    *params.BlobConfig
	}{
		{50, 0, 100, 300, params.DefaultPragueBlobConfig, first},
		{199, 100, 200, 300, first, first},
		{200, 200, 300, 300, first, third},
		{300, 300, 0, 0, third, nil},
	} {
		got := forksAt(&config, genesis, test.head)
		for _, one := range []struct {
			name  string
			rules *rules
			time  uint64
		}{{"current", got.Current, test.current}, {"next", got.Next, test.next}, {"last", got.Last, test.last}} {
			if one.rules == nil && one.time > 0 || one.rules != nil && one.rules.ActivationTime != one.time {
				t.Errorf("at %d, the %s fork is %+v, expected that at %d", test.head, one.name, one.rules, one.time)
			}
		}
		if got.Current == nil || *got.Current.BlobSchedule != *test.blobs {
			t.Errorf("at %d, the schedule is not %+v", test.head, test.blobs)
		}
		if got.Next != nil && *got.Next.BlobSchedule != *test.nextBlobs {
			t.Errorf("at %d, the next schedule is %+v, expected %+v", test.head, got.Next.BlobSchedule, test.nextBlobs)
		}
	}
}
