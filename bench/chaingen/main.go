// Command chaingen writes a chain of the demo network's traffic as files that any Ethereum
// client can import: genesis.json and chain.rlp (from block 1). meta.json describes them. The
// same flags give the same files.
//
//	go run ./bench/chaingen -blocks 6000 -txs 60 -out DIR
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"

	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"
)

const reportEvery = 250 // blocks

func main() {
	log.SetFlags(0)
	var (
		blocks = flag.Int("blocks", 6000, "blocks to write")
		txs    = flag.Int("txs", 60, "mean number of transactions in a block")
		seed   = flag.Uint64("seed", 1, "seed of the chain")
		out    = flag.String("out", "", "directory to write to, created if missing")
		small  = flag.Bool("demo", false, "generate the network of the demo: few accounts, a steady base fee; ignores -txs")
	)
	amsterdam := flag.Uint64("amsterdam", 0, "first block of Amsterdam, at least 20; 0 for none")
	flag.Parse()
	if *out == "" || *blocks < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "chaingen: expected -out DIR, at least 1 block and no further arguments")
		flag.Usage()
		os.Exit(2)
	}
	config := demo.Dense(*txs)
	if *small {
		config = demo.Default()
	}
	config.Seed, config.AmsterdamBlock = *seed, *amsterdam

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, config, *blocks, *out); err != nil {
		log.Fatal("chaingen: ", err)
	}
}

// meta is the contents of meta.json.
type meta struct {
	Blocks       int           `json:"blocks"`
	Transactions int           `json:"transactions"`
	Failed       int           `json:"failedTransactions"`
	Logs         int           `json:"logs"`
	Gas          uint64        `json:"gas"`
	Head         common.Hash   `json:"head"`
	StateRoot    common.Hash   `json:"stateRoot"`
	Config       demo.Config   `json:"config"`
	Examples     demo.Examples `json:"examples"`
}

func run(ctx context.Context, config demo.Config, blocks int, out string) (err error) {
	network, err := demo.New(config)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := writeGenesis(network, filepath.Join(out, "genesis.json")); err != nil {
		return err
	}
	m := meta{Config: config}
	if m.Examples, err = network.Examples(); err != nil {
		return err
	}
	if err := writeChain(ctx, network, blocks, out, &m); err != nil {
		return err
	}
	return writeJSON(filepath.Join(out, "meta.json"), m)
}

func writeGenesis(network *demo.Network, path string) error {
	genesis, err := network.Genesis()
	if err != nil {
		return err
	}
	return writeJSON(path, genesis)
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// writeChain writes chain.rlp and counts its contents.
func writeChain(ctx context.Context, network *demo.Network, blocks int, out string, m *meta) (err error) {
	file, err := os.Create(filepath.Join(out, "chain.rlp"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	writer := bufio.NewWriterSize(file, 1<<20)

	builder, err := reference.New(network)
	if err != nil {
		return err
	}
	start := time.Now()
	err = builder.Build(ctx, blocks, func(b reference.Block) error {
		m.count(b)
		if m.Blocks%reportEvery == 0 || m.Blocks == blocks {
			log.Printf("%d of %d blocks, %d transactions, %d logs, %s", m.Blocks, blocks, m.Transactions, m.Logs, time.Since(start).Round(time.Second))
		}
		return rlp.Encode(writer, b.Block)
	})
	if err != nil {
		return err
	}
	return writer.Flush()
}

func (m *meta) count(b reference.Block) {
	m.Blocks++
	m.Transactions += len(b.Transactions())
	m.Gas += b.GasUsed()
	m.Head, m.StateRoot = b.Hash(), b.Root()
	for _, receipt := range b.Receipts {
		m.Logs += len(receipt.Logs)
		if receipt.Status == 0 {
			m.Failed++
		}
	}
}
