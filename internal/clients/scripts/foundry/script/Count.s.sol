// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

import {Counter} from "../src/Counter.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

// Count deploys a counter and calls it, which depends on the deployment.
contract Count {
    Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    bool public constant IS_SCRIPT = true;

    function run() external {
        vm.startBroadcast();
        Counter counter = new Counter(7);
        counter.add(3);
        counter.add(4);
        vm.stopBroadcast();
    }
}
