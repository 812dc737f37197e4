// The second checker in Pyodide: node dev/pyodide/verify.mjs PROOF INSTANCE.npz
// It needs `npm install pyodide` in a folder above this one, or the package's folder in EXACTSEL_PYODIDE.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const from = process.env.EXACTSEL_PYODIDE;
const { loadPyodide } = await import(from ? pathToFileURL(path.join(from, "pyodide.mjs")) : "pyodide");
const python = await loadPyodide();
const checker = path.join(import.meta.dirname, "../../certificates");
python.FS.mkdir("/certificates");
python.FS.mount(python.FS.filesystems.NODEFS, { root: checker }, "/certificates");
for (const [name, file] of [["/proof.exsel", process.argv[2]], ["/instance.npz", process.argv[3]]]) {
  python.FS.writeFile(name, fs.readFileSync(file));
}
process.exitCode = await python.runPythonAsync(`
import runpy, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "/certificates")
sys.argv = ["standalone", "/proof.exsel", "/instance.npz"]
code = 0
try:
    runpy.run_module("exactsel_certificates.standalone", run_name="__main__")
except SystemExit as end:
    code = end.code or 0
code
`);
