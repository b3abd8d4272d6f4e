package demo_test

import (
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/source/demo"
)

func TestConfigIsChecked(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*demo.Config)
		want   string
	}{
		{"no chain id", func(c *demo.Config) { c.ChainID = 0 }, "chain id is 0"},
		{"few senders", func(c *demo.Config) { c.Senders = 3 }, "3 senders, expected at least 4"},
		{"no holder", func(c *demo.Config) { c.Holders = 0 }, "0 holders, expected at least 1"},
		{"one token", func(c *demo.Config) { c.Tokens = 1 }, "1 tokens, expected at least 2"},
		{"no traffic", func(c *demo.Config) { c.MeanTransactions = 0 }, "0 transactions a block"},
		{"little gas", func(c *demo.Config) { c.GasLimit = 1_000_000 }, "gas limit is 1000000, expected"},
		{"much gas to fill", func(c *demo.Config) { c.GasLimit = 24_000_001 }, "gas limit is 24000001 (want at most 24000000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := demo.Default()
			test.change(&config)
			_, err := demo.New(config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error is %v, expected one with %q", err, test.want)
			}
		})
	}
}

func TestNextKeepsOrder(t *testing.T) {
	traffic := begin(t, demo.Default())
	for _, test := range []struct {
		number  uint64
		baseFee *big.Int
		want    string // "" if right
	}{
		{0, big.NewInt(7), "contents asked for block 0, expected 1"},
		{2, big.NewInt(7), "contents asked for block 2, expected 1"},
		{1, nil, "base fee of block 1 is <nil>"},
		{1, big.NewInt(-1), "base fee of block 1 is -1"},
		{1, big.NewInt(7), ""},
		{1, big.NewInt(7), "contents asked for block 1, expected 2"},
		{2, big.NewInt(7), ""},
	} {
		_, err := traffic.Next(test.number, test.baseFee)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("Next(%d, %v): error is %v, expected %q", test.number, test.baseFee, err, test.want)
		}
	}
}

// The seed changes accounts and traffic, and nothing but the seed, the number
// and the base fee does.
func TestTrafficFollowsFromSeed(t *testing.T) {
	other := demo.Default()
	other.Seed = 2
	a, same, different := begin(t, demo.Default()), begin(t, demo.Default()), begin(t, other)
	for number := uint64(1); number <= 20; number++ {
		want := hashes(t, a, number)
		if got := hashes(t, same, number); got != want {
			t.Fatalf("block %d with the same seed: transactions %s, expected %s", number, got, want)
		}
		if got := hashes(t, different, number); want != "" && got == want {
			t.Fatalf("block %d with another seed has the same transactions", number)
		}
	}
}

func begin(t *testing.T, config demo.Config) *demo.Traffic {
	t.Helper()
	network, err := demo.New(config)
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := network.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	return traffic
}

func hashes(t *testing.T, traffic *demo.Traffic, number uint64) string {
	t.Helper()
	contents, err := traffic.Next(number, big.NewInt(1_000_000_000))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := contents.Timestamp, demo.GenesisTime+12*number; got != want {
		t.Fatalf("time of block %d is %d, expected %d", number, got, want)
	}
	var all strings.Builder
	for _, tx := range contents.Transactions {
		all.WriteString(tx.Hash().Hex())
	}
	return all.String()
}
