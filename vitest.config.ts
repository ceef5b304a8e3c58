import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { diskOnly } from './test/harness/disk-only.ts'

// Where Node keeps modules compiled: each test file and each program begins with the same ones in a process of its own.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'mediabucket-compile-cache')

/**
 * What takes longest, so that no core waits for it at the end. Vitest begins with the largest files, but some of these are small: they run
 * suites of other files, or start many processes.
 */
const longest =
  /test\/(faults|docs|s3)\/|architecture\/(walks|unbound)|catalog\/(sqlite|postgres)[.-]|(render-ahead|variants?-\w+|upload-aborted|upload-resumed|metadata|signals|tray|timeline|uploads|viewer|client-commands|unread-responses|slow-\w+)\.test/

/**
 * Files that start many processes, or one in many states. `npm test` without a file leaves them out; `npm run test:long` runs them.
 */
const long = [
  'packages/server/test/pictures/{extract-picture,picture-workers,remove-metadata}.test.ts',
  'packages/server/test/storage/{blobs/s3-faults,catalog/postgres-transactions}.test.ts',
  'packages/strip-metadata/test/{hidden-bytes,tracks}.test.ts',
  'test/{attack,bench,earlier-data,faults,packages,postgres-s3}/**/*.test.ts',
  'test/architecture/unbound-methods.test.ts',
  'test/cli/{audit-downloads,mcp,over-http,planted-files,sync-keys,upload-resumed}.test.ts',
  'test/client/stored-state.test.ts',
  'test/docs/examples.test.ts',
  'test/e2e/{app-packages,many-uploads,placeholders,scale,uploaded-code}.test.ts',
  'test/http/{bucket-variants,connection-limits,file-pictures,focus,long-lists,named-urls,render-ahead,scanned-uploads,service-token-table,usage}.test.ts',
  'test/http/{slow-clients,slow-listings,slow-readers,tus-crash,unread-responses}.test.ts',
  'test/http/{variant-sizes,variants-bounds,variants-fairness,variants-rendering}.test.ts',
  'test/s3/{hostile-keys,slow-responses,upkeep}.test.ts',
  'test/operations/{backup-faults,backup-generations,backup-places,damaged-catalog,damaged-cells,development-data,first-start,fsck,full-disk}.test.ts',
  'test/operations/{installation,killed-restore,migrate,monitoring,object-moves,other-tables,outage-alerts,quota-at-once}.test.ts',
  'test/operations/{reload,reverse-proxies,shutdown,signals,start-failures,unmounted,unwritable-catalog,upgrade,variants,worker-processes}.test.ts',
]

/** What `npm run test:oldest-node` leaves out: the other database, and what takes long and uses little of Node.js. */
const notOnOldestNode = [
  ...long,
  'packages/server/test/pictures/**',
  'packages/server/test/**/{postgres,s3-,transfer,two-servers,ranks,killed-migration,name-search,sqlite-inspection}*',
  'packages/server/test/**/{list-media,cached-responses,bytes-cache,slow-readers,remove-media,text-types}*',
  'packages/server/test/**/{verify-token,deliverer,data-lock,adapt-checkpoints,free-space,hot-reads}*',
  'packages/server/test/**/{store-media,match-blobs,check-data,deferred-deletions}*',
  'packages/client/test/{page,xhr-upload,client-options,package}.test.ts',
]

/** What each share of the tests has (`.ci/run`): what takes seconds, and the requests that the service exists for. */
const inEachShare =
  /packages\/[\w-]+\/src\/|test\/architecture\/|\/listing[\w-]*\.test|\/list-media\.test|test\/http\/(upload-raw|upload-form|bytes)\.test/

class LongestFirst extends BaseSequencer {
  /** What takes longest is spread over the shares. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const {
      always = [],
      slow = [],
      fast = [],
    } = Object.groupBy(files, ({ moduleId }) =>
      inEachShare.test(moduleId) ? 'always' : longest.test(moduleId) ? 'slow' : 'fast',
    )
    return [...always, ...(await super.shard(slow)), ...(await super.shard(fast))]
  }

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [true, false].flatMap((isLong) =>
      sorted.filter(({ moduleId }) => longest.test(moduleId) === isLong),
    )
  }
}

/** `npm test` and `npm run test:long` without a file: only then are programs installed on the machine. `npm run test:tools` installs them too. */
const command = process.argv
  .slice(2)
  .filter((argument) => !argument.startsWith('--shard='))
  .join(' ')
const isWholeRun = command === 'run' || command === 'run --project=long'

/** With `MEDIABUCKET_TEST_ENGINES`, tests of the disk are left out. */
function onOtherEngines() {
  if (!process.env['MEDIABUCKET_TEST_ENGINES']?.includes('s3')) return {}
  const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const titles = diskOnly.flatMap(({ test }) => (test === undefined ? [] : [literal(test)]))
  return {
    exclude: diskOnly.flatMap(({ file, test }) => (test === undefined ? [file] : [])),
    ...(titles.length > 0 && { testNamePattern: new RegExp(`^(?!.*(${titles.join('|')}))`) }),
  }
}

const serviceSetup = [
  ...(isWholeRun ? ['test/harness/tools.ts'] : []),
  'test/harness/postgres.ts',
  'test/harness/ceph.ts',
  'packages/gallery/ensure-built.ts',
  'test/harness/bundle.ts',
]

export default defineConfig({
  test: {
    ...onOtherEngines(),
    // Far above what any test takes: a test that hangs ends, and a busy machine fails none.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    pool: 'forks',
    // Test files share a process: they leave no global state, and each saves the start of a process and its imports.
    isolate: false,
    expect: { poll: { timeout: 60_000 } },
    restoreMocks: true,
    unstubGlobals: true,
    setupFiles: ['test/harness/property-seed.ts'],
    sequence: { sequencer: LongestFirst },
    // Three times the cores of a small machine, because many tests wait for a server or a browser.
    maxWorkers: 6,
    projects: [
      // Of pure modules, beside them. They need no set-up.
      { extends: true, test: { name: 'unit', include: ['packages/*/src/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'service',
          include: ['packages/*/test/**/*.test.ts', 'test/!(clients)/**/*.test.ts'],
          exclude: long,
          globalSetup: serviceSetup,
        },
      },
      ...(command === 'run'
        ? []
        : [{ extends: true as const, test: { name: 'long', include: long, globalSetup: serviceSetup } }]),
      // A project, because Vitest applies --exclude to none.
      ...(process.argv.includes('--project=oldest-node')
        ? [
            {
              extends: true as const,
              test: {
                name: 'oldest-node',
                include: ['packages/{server,cli,client}/test/**/*.test.ts'],
                exclude: notOnOldestNode,
                globalSetup: serviceSetup,
              },
            },
          ]
        : []),
      // Programs of others, which are installed only when these tests run: by `npm run test:clients`, or with the name of a file.
      ...(command === 'run'
        ? []
        : [
            {
              extends: true as const,
              test: {
                name: 'clients',
                include: ['test/clients/**/*.test.ts'],
                globalSetup: [
                  'test/harness/postgres.ts',
                  'test/harness/ceph.ts',
                  'test/harness/bundle.ts',
                  'test/clients/install.ts',
                ],
              },
            },
          ]),
    ],
  },
})
