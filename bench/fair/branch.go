package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// The network that is made, taken back, continued on another branch, and removed, beside
// the one that clients ask.
const (
	branchName = "branch"
	branchLong = 60 // blocks of the first branch
	branchFork = 40 // the last block that the branches have in common
	branchMore = 30 // blocks of the second branch from there on
)

// brancher has a running service serve a network beside others, again and again, and works
// on it meanwhile.
type brancher struct {
	d             *served
	client        *client
	genesis       string
	first, second string // files of blocks: all of one branch, and the other branch's own
	wantOne, want string // hashes of the heads
	rounds        int
}

func newBrancher(d *served, c *client) (b *brancher, err error) {
	b = &brancher{d: d, client: c}
	made := newChain(branchLong)
	b.wantOne = made.blocks[branchLong].Hash().Hex()
	if b.genesis, b.first, err = made.write(d.dir, "first.rlp", 1); err != nil {
		return nil, err
	}
	made.drop(branchLong - branchFork)
	made.grow(branchMore)
	b.want = made.blocks[branchFork+branchMore].Hash().Hex()
	_, b.second, err = made.write(d.dir, "second.rlp", branchFork+1)
	return b, err
}

// run repeats until ctx is done.
func (b *brancher) run(ctx context.Context) error {
	for ; ctx.Err() == nil; b.rounds++ {
		if err := b.once(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("network %s beside others, time %d: %w", branchName, b.rounds+1, err)
		}
	}
	return nil
}

func (b *brancher) once(ctx context.Context) error {
	network := []string{"--network", branchName}
	for _, step := range []struct {
		args  []string
		head  int // 0: not served
		wants string
	}{
		{append([]string{"import", "--genesis", b.genesis, b.first}, network...), 0, ""},
		{[]string{"network", "add", branchName}, branchLong, b.wantOne},
		{append([]string{"rewind", "--pause", "--to", strconv.Itoa(branchFork)}, network...), branchFork, ""},
		{append([]string{"import", "--pause", "--genesis", b.genesis, b.second}, network...), branchFork + branchMore, b.want},
		{[]string{"network", "remove", "--yes", branchName}, 0, ""},
	} {
		out, err := exec.CommandContext(ctx, b.d.ashlar.Bin, append(step.args, "--data", b.d.ashlar.Data)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ashlar %s: %w\n%s", strings.Join(step.args, " "), err, out)
		}
		if err := b.check(ctx, step.head, step.wants); err != nil {
			return fmt.Errorf("after ashlar %s: %w", strings.Join(step.args, " "), err)
		}
	}
	return nil
}

// check asks the service for the head of the network.
func (b *brancher) check(ctx context.Context, number int, hash string) error {
	status, answer, err := b.client.postTo(ctx, "/"+branchName, b.client.keys[0], strings.NewReader(request("eth_getBlockByNumber", `"latest"`, "false")))
	if err != nil {
		return err
	}
	if number == 0 {
		if status == 200 {
			return errors.New("the network is served")
		}
		return nil
	}
	var got struct {
		Result struct{ Number, Hash string }
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return fmt.Errorf("status %d: %w", status, err)
	}
	if got.Result.Number != fmt.Sprintf("%#x", number) || hash != "" && got.Result.Hash != hash {
		return fmt.Errorf("the head is %s %s, expected %d %s (%s)", got.Result.Number, got.Result.Hash, number, hash, answer)
	}
	return nil
}
