import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listMaterials } from './bill-of-materials.ts'
import { packAll } from './pack.ts'

// npm run --silent sbom > mediabucket.cdx.json

const directory = await mkdtemp(join(tmpdir(), 'mediabucket-release-'))
try {
  process.stdout.write(await listMaterials(directory, await packAll(directory)))
} finally {
  await rm(directory, { recursive: true, force: true })
}
