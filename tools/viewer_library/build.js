// Makes the one library of the viewer's page, out of the packages that package-lock.json names:
//   npm ci && npm run build [-- FOLDER]
// FOLDER (default: hloom/viewer/page) receives dagre.min.js, a script that defines the global `dagre`
// ({graphlib, layout}), dagre.LICENSE, its licence, and dagre.json: versions, and the SHA-256 of the script.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = process.argv[2] ?? join(here, "../../hloom/viewer/page");
const parts = ["@dagrejs/dagre", "@dagrejs/graphlib"];
const inside = (name, file) => readFileSync(join(here, "node_modules", name, file), "utf8");
const version = (name) => JSON.parse(inside(name, "package.json")).version;

const made = await build({
  stdin: { contents: 'export { graphlib, layout } from "@dagrejs/dagre";', resolveDir: here },
  banner: { js: `/*! ${parts.map((name) => `${name} ${version(name)}`).join(", ")} | MIT, see dagre.LICENSE */` },
  bundle: true,
  format: "iife",
  globalName: "dagre",
  legalComments: "none",
  minify: true,
  target: "es2020",
  write: false,
});
const script = made.outputFiles[0].text;
const licences = new Map();
for (const name of parts) {
  const text = inside(name, "LICENSE").trim();
  licences.set(text, [...(licences.get(text) ?? []), name]);
}
const record = {
  versions: Object.fromEntries([...parts, "esbuild"].map((name) => [name, version(name)])),
  sha256: createHash("sha256").update(script).digest("hex"),
};
writeFileSync(join(folder, "dagre.min.js"), script);
writeFileSync(
  join(folder, "dagre.LICENSE"),
  [...licences].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`).join("\n"),
);
writeFileSync(join(folder, "dagre.json"), JSON.stringify(record, null, 2) + "\n");
