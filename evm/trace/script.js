// The script of a client, evaluated when it is first used: go-ethereum evaluates a tracer
// while it makes it, when nothing can stop it yet. What allocates step by step is stopped
// by its memory. The best known calls that allocate much in a single step are bounded here.
(function (source, config) {
	var evaluate = eval, most = 1 << 20, made;
	function bounded(size, what) {
		if (!(size <= most)) throw new RangeError(what + " of more than " + most);
	}
	function forbidden() { throw new TypeError("code cannot be made of strings here"); }
	// Code in strings, and texts that are parsed with a call per nested level.
	[function () {}, function* () {}, async function () {}].forEach(function (f) {
		Object.defineProperty(Object.getPrototypeOf(f), "constructor", {value: forbidden});
	});
	globalThis.eval = globalThis.Function = forbidden;
	var parse = JSON.parse;
	JSON.parse = function (text, reviver) {
		text = String(text);
		bounded(text.length << 4, "JSON");
		return parse(text, reviver);
	};
	// Strings that a single call makes.
	["repeat", "padStart", "padEnd"].forEach(function (name) {
		var original = String.prototype[name];
		String.prototype[name] = function (count, fill) {
			var text = String(this), n = Math.floor(Number(count)) || 0;
			bounded(name == "repeat" ? text.length * n : n, "a text");
			return original.call(text, n, fill);
		};
	});
	// Buffers and arrays that a single call makes.
	["ArrayBuffer", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
		"Float32Array", "Float64Array"].forEach(function (name) {
		var original = globalThis[name];
		function guarded(first, offset, length) {
			if (typeof first != "object" || first === null) return new original(bytes(first));
			if (ArrayBuffer.isView(first)) return new original(first);
			if (Object.prototype.toString.call(first) != "[object ArrayBuffer]") bounded(first.length, name);
			return length === undefined ? new original(first, offset) : new original(first, offset, length);
		}
		function bytes(size) {
			size = Number(size) || 0;
			bounded(size, name);
			return size;
		}
		guarded.prototype = original.prototype;
		Object.getOwnPropertyNames(original).forEach(function (member) {
			if (typeof original[member] == "function") guarded[member] = original[member];
		});
		// go-ethereum recognizes its own buffers by their constructor.
		if (name != "Uint8Array") Object.defineProperty(original.prototype, "constructor", {value: guarded});
		globalThis[name] = guarded;
	});
	var from = Array.from;
	Array.from = function (items, map, self) {
		if (items !== null && typeof items == "object") bounded(items.length || 0, "an array");
		return from.call(Array, items, map, self);
	};
	["fill", "join", "concat", "indexOf", "lastIndexOf", "includes", "copyWithin", "reverse", "sort", "slice"].forEach(function (name) {
		var original = Array.prototype[name];
		Array.prototype[name] = function () {
			bounded(this.length || 0, "an array");
			return original.apply(this, arguments);
		};
	});
	function tracer() {
		if (!made) {
			var object = evaluate("(" + source + ")");
			if (typeof object.setup == "function") object.setup(config);
			made = object;
		}
		return made;
	}
	return tracer;
})
