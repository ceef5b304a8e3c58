import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createBucket, gateway } from '../../harness/ceph.ts'
import { runHere } from '../../harness/commands.ts'
import { usePostgres, useS3 } from '../../harness/database.ts'
import { freePort } from '../../harness/free-port.ts'
import { startServer } from '../../harness/server.ts'
import { makeToken } from '../../harness/token.ts'

/** An S3 endpoint, and the keys of a user who may create buckets there. */
export interface Door extends AsyncDisposable {
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
  /** Stores neither checksums nor their attributes: the gateway of Debian 12, which is of 2021. */
  readonly isOld: boolean
  /** Lets objects of a bucket be public. */
  readonly allowPublic: (bucket: string) => Promise<void>
}

/** The service, with its catalog and its files in these engines. */
async function openService(...engines: readonly (() => () => void)[]): Promise<Door> {
  const restore = engines.map((use) => use())
  try {
    const port = await freePort()
    const server = await startServer({
      MEDIABUCKET_S3_PORT: `${port}`,
      MEDIABUCKET_ADDRESS_RATE: 'off',
      MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
    })
    const { accessKey, secretKey } = await makeKeys(server)
    return {
      endpoint: `http://127.0.0.1:${port}`,
      accessKey,
      secretKey,
      isOld: false,
      async allowPublic(bucket) {
        await runHere(server.data, 'bucket set', bucket, '--public-keys', 'on')
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } finally {
    for (const undo of restore) undo()
  }
}

/** The keys of a new service token that may do everything. */
async function makeKeys(server: Parameters<typeof makeToken>[0]) {
  const scopes = 'media:read,media:write,media:delete,buckets:manage'
  const { token: printed } = await makeToken(server, '--service', '--scope', scopes, '--s3', '--json')
  const keys: { access_key_id: string; secret_access_key: string } = JSON.parse(printed)
  return { accessKey: keys.access_key_id, secretKey: keys.secret_access_key }
}

/** Ceph's gateway, against which the scenarios themselves are tested. */
async function openCeph(): Promise<Door> {
  const { endpoint, accessKey, secretKey } = await gateway()
  return {
    endpoint,
    accessKey,
    secretKey,
    isOld: true,
    async allowPublic() {},
    async [Symbol.asyncDispose]() {},
  }
}

/**
 * What the scenarios run against. With `MEDIABUCKET_TEST_S3_DOOR=ceph` that is Ceph's gateway, so that a scenario is known to be right
 * before the service is.
 */
export const doors: readonly (readonly [name: string, open: () => Promise<Door>])[] =
  process.env['MEDIABUCKET_TEST_S3_DOOR'] === 'ceph'
    ? [['Ceph', openCeph]]
    : [
        ['SQLite and the disk', () => openService()],
        ['PostgreSQL and S3', () => openService(usePostgres, useS3)],
      ]

/** The environment of a scenario with a bucket of its own, whose name begins those of the buckets that it creates. */
export async function environmentOf(door: Door): Promise<Readonly<Record<string, string>>> {
  const bucket = await createBucket({ ...door, directory: '' })
  await door.allowPublic(bucket)
  return {
    ENDPOINT: door.endpoint,
    BUCKET: bucket,
    AWS_ACCESS_KEY_ID: door.accessKey,
    AWS_SECRET_ACCESS_KEY: door.secretKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    OLD_GATEWAY: door.isOld ? '1' : '',
  }
}

/** Files of many sizes and names. `part.bin` is a part of `files/big.bin`. */
export async function writeFiles(directory: string): Promise<void> {
  const big = randomBytes(16_000_000)
  const files: Readonly<Record<string, Uint8Array | string>> = {
    'files/big.bin': big,
    'files/Größe 1.bin': randomBytes(300_000),
    'files/notes.txt': `Notes of the harbour, ${randomUUID()}.\n`,
    'files/empty.txt': '',
    "files/folder/it's + 100%.txt": 'a name with special characters\n',
    'files/folder/deep/letter.txt': `${'Dear reader. '.repeat(500)}\n`,
    'part.bin': big.subarray(1_000_000, 1_004_321),
  }
  for (const [name, bytes] of Object.entries(files)) {
    const path = join(directory, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, bytes)
  }
}
