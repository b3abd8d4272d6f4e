package dashboard

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// What stands for a key and for its password where nobody may see them any more.
const (
	keyPlace      = "YOUR-KEY"
	passwordPlace = "YOUR-PASSWORD"
)

// snippet is lines that ask a network for its newest block.
type snippet struct {
	Tool string
	Text string
}

// snippets are lines to paste for the tools that people use with a family of networks.
// What stands in a URL was checked where it came from, and a password is hexadecimal,
// so neither needs quoting. password is empty where none is needed.
func snippets(family, url, password string) []snippet {
	if family == familyStarknet {
		return []snippet{
			{"curl", curlLine(url, password, "starknet_blockNumber")},
			{"starknet.js", lines(
				`import { RpcProvider } from "starknet";`,
				``,
				`const provider = new RpcProvider({ nodeUrl: "`+url+`"`+withPassword(password, `, headers: { Authorization: "%s" }`)+` });`,
				`console.log(await provider.getBlockNumber());`)},
		}
	}
	auth := ""
	if password != "" {
		auth = `, request_kwargs={"auth": ("", "` + password + `")}`
	}
	return []snippet{
		{"curl", curlLine(url, password, "eth_blockNumber")},
		{"ethers", ethersLines(url, password)},
		{"viem", lines(
			`import { createPublicClient, http } from "viem";`,
			``,
			`const transport = http("`+url+`"`+withPassword(password, `, { fetchOptions: { headers: { Authorization: "%s" } } }`)+`);`,
			`const client = createPublicClient({ transport });`,
			`console.log(await client.getBlockNumber());`)},
		{"web3.py", lines(
			`from web3 import Web3`,
			``,
			`w3 = Web3(Web3.HTTPProvider("`+url+`"`+auth+`))`,
			`print(w3.eth.block_number)`)},
		{"cast", "cast block-number --rpc-url " + url + withPassword(password, ` --rpc-headers "Authorization: %s"`)},
	}
}

func curlLine(url, password, method string) string {
	if password != "" {
		url += " -u :" + password
	}
	return lines("curl "+url+` \`, `  -H 'Content-Type: application/json' \`, `  -d '{"jsonrpc": "2.0", "id": 1,`, `       "method": "`+method+`", "params": []}'`)
}

func ethersLines(url, password string) string {
	if password == "" {
		return lines(
			`import { JsonRpcProvider } from "ethers";`,
			``,
			`const provider = new JsonRpcProvider("`+url+`");`,
			`console.log(await provider.getBlockNumber());`)
	}
	return lines(
		`import { FetchRequest, JsonRpcProvider } from "ethers";`,
		``,
		`const request = new FetchRequest("`+url+`");`,
		withPassword(password, `request.setHeader("Authorization", "%s");`),
		`const provider = new JsonRpcProvider(request);`,
		`console.log(await provider.getBlockNumber());`)
}

// withPassword writes a password as HTTP's Basic authentication has it into a text;
// nothing where there is none.
func withPassword(password, text string) string {
	if password == "" {
		return ""
	}
	return fmt.Sprintf(text, "Basic "+base64.StdEncoding.EncodeToString([]byte(":"+password)))
}

func lines(all ...string) string { return strings.Join(all, "\n") }

// The families of networks, as Network.Family has them.
const (
	familyEVM      = "evm"
	familyStarknet = "starknet"
)

// use is lines to paste for one network, with a key or a place for it.
type use struct {
	Network  string
	URL      string
	Socket   string // the same for WebSockets
	Snippets []snippet
}
