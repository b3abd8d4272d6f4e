// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

import {Counter} from "../src/Counter.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

// Count deploys a counter and calls it, which depends on the deployment, and another with CREATE2.
contract Count {
    Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    bool public constant IS_SCRIPT = true;

    function run() external {
        vm.startBroadcast();
        new Counter{salt: 0}(1); // forge sends it to a factory
        Counter counter = new Counter(7);
        counter.add(3);
        counter.add(4);
        vm.stopBroadcast();
    }
}
