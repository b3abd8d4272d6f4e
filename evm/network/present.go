package network

import (
	"fmt"

	"ashlar/evm/api"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/family"

	"github.com/ethereum/go-ethereum/params"
)

// Presentation implements [family.Presenter].
func (Family) Presentation() family.Presentation {
	return family.Presentation{
		History:    ", with the state and the proofs of each",
		Snippets:   snippets,
		Programs:   programs,
		HeadResult: func(head uint64) string { return fmt.Sprintf(`"%#x"`, head) },
	}
}

func snippets(url, password string) []family.Snippet {
	auth := ""
	if password != "" {
		auth = `, request_kwargs={"auth": ("", "` + password + `")}`
	}
	return []family.Snippet{
		{Tool: "curl", Text: family.CurlLine(url, password, "eth_blockNumber")},
		{Tool: "ethers", Text: ethersLines(url, password)},
		{Tool: "viem", Text: family.Lines(
			`import { createPublicClient, http } from "viem";`,
			``,
			`const transport = http("`+url+`"`+family.WithPassword(password, `, { fetchOptions: { headers: { Authorization: "%s" } } }`)+`);`,
			`const client = createPublicClient({ transport });`,
			`console.log(await client.getBlockNumber());`)},
		{Tool: "web3.py", Text: family.Lines(
			`from web3 import Web3`,
			``,
			`w3 = Web3(Web3.HTTPProvider("`+url+`"`+auth+`))`,
			`print(w3.eth.block_number)`)},
		{Tool: "cast", Text: "cast block-number --rpc-url " + url + family.WithPassword(password, ` --rpc-headers "Authorization: %s"`)},
	}
}

func ethersLines(url, password string) string {
	if password == "" {
		return family.Lines(
			`import { JsonRpcProvider } from "ethers";`,
			``,
			`const provider = new JsonRpcProvider("`+url+`");`,
			`console.log(await provider.getBlockNumber());`)
	}
	return family.Lines(
		`import { FetchRequest, JsonRpcProvider } from "ethers";`,
		``,
		`const request = new FetchRequest("`+url+`");`,
		family.WithPassword(password, `request.setHeader("Authorization", "%s");`),
		`const provider = new JsonRpcProvider(request);`,
		`console.log(await provider.getBlockNumber());`)
}

// Methods implements [family.Presenter].
func (Family) Methods() ([]string, error) {
	executor, err := execute.New(params.MergedTestChainConfig) // the names depend on no chain
	if err != nil {
		return nil, err
	}
	methods, err := api.New(query.NewChain(nil, nil, executor), api.Config{}).Methods()
	if err != nil {
		return nil, err
	}
	return methods.Names(), nil
}
