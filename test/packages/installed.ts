import { cp, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listMaterials } from '../../release/bill-of-materials.ts'
import { packAll, type Run, runIn, type Tarballs } from '../../release/pack.ts'

/** All packages as npm packs them, installed into an empty project. */
export interface Installed extends AsyncDisposable {
  readonly project: string
  readonly tarballs: Tarballs
  /** Runs a program in the project; rejects as execFile does when it fails. */
  readonly run: Run
  readonly billOfMaterials: () => Promise<string>
}

export async function installPackages(): Promise<Installed> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'mediabucket-packages-')))
  const tarballs = await packAll(directory)
  const { client, gallery, server, stripMetadata } = tarballs
  const project = join(directory, 'project')
  await cp(join(import.meta.dirname, 'project'), project, { recursive: true })
  await writeFile(join(project, 'package.json'), '{ "name": "empty", "private": true }')
  const run = runIn(project)
  await run(
    'npm',
    'install',
    client,
    stripMetadata,
    gallery,
    server,
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
  )
  return {
    project,
    tarballs,
    run,
    billOfMaterials: () => listMaterials(directory, tarballs),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}
