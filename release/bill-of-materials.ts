import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import gallery from '../packages/gallery/package.json' with { type: 'json' }
import server from '../packages/server/package.json' with { type: 'json' }
import { runIn, type Tarballs } from './pack.ts'

/** Tools that build the gallery. Its other development dependencies are bundled into its package. */
const tools = ['vite']

/** The packages that the service's package names as bundled (packages/server/build.ts), with their exact versions. */
async function bundledIn(tarball: string): Promise<Record<string, string>> {
  const file = 'package/dist/THIRD-PARTY-NOTICES.txt'
  const { stdout } = await runIn(dirname(tarball))('tar', 'xzf', tarball, '--to-stdout', file)
  const named = stdout.matchAll(/^(\S+) (\d+\.\d+\.\d\S*) \([^)]+\)$/gm)
  return Object.fromEntries([...named].map(([, name = '', version = '']) => [name, version]))
}

/**
 * Returns what an installation of the package `mediabucket` and of the packages for apps consists of on all platforms, as CycloneDX 1.5 in
 * JSON, with the libraries that are bundled into the packages. Writes into `directory`. (`npm sbom` in the repository would describe its workspace.)
 */
export async function listMaterials(directory: string, tarballs: Tarballs): Promise<string> {
  // npm names the product after the directory.
  const project = join(directory, server.name)
  await mkdir(project)
  const bundled = Object.entries(gallery.devDependencies).filter(([name]) => !tools.includes(name))
  const { name, version, description, license } = server
  const dependencies = {
    ...server.dependencies,
    ...Object.fromEntries(bundled),
    ...(await bundledIn(tarballs.server)),
    '@mediabucket/client': `file:${tarballs.client}`,
    '@mediabucket/gallery': `file:${tarballs.gallery}`,
    '@mediabucket/react': `file:${tarballs.react}`,
    '@mediabucket/vue': `file:${tarballs.vue}`,
    '@mediabucket/strip-metadata': `file:${tarballs.stripMetadata}`,
  }
  const manifest = { name, version, description, license, dependencies }
  await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
  // The framework of an app is a peer dependency, and no part of what is published.
  const options = ['--package-lock-only', '--omit=dev', '--legacy-peer-deps']
  const npm = (...args: string[]) => runIn(project)('npm', ...args, ...options)
  await npm('install', '--prefer-offline', '--no-audit', '--no-fund')
  const { stdout } = await npm('sbom', '--sbom-format=cyclonedx', '--sbom-type=application')
  const shown = JSON.parse(stdout, (key, value) => {
    // They differ between two runs, and are optional.
    if (key === 'serialNumber' || key === 'timestamp') return undefined
    // The files that were packed here are nowhere else.
    return key === 'externalReferences' && Array.isArray(value)
      ? value.filter(({ url }) => !`${url}`.startsWith('file:'))
      : value
  })
  return `${JSON.stringify(shown, null, 2)}\n`
}
