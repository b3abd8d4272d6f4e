// Package clients lets the client libraries that people use talk to the service: ethers
// and viem (JavaScript) and web3.py (Python), over HTTP and WebSocket, and starknet.js and
// starknet.py for Starknet networks. It has no code, only tests. install.sh puts the libraries into a folder, which the environment
// variable ASHLAR_CLIENTS names.
package clients
