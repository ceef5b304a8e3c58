import { s3Settings } from './ceph.ts'
import { createDatabase } from './postgres.ts'

type Settings = Readonly<Record<string, string>>

/** `MEDIABUCKET_TEST_ENGINES=postgres+s3 npx vitest run test/http` runs these tests on PostgreSQL and an S3 store. */
const chosen = process.env['MEDIABUCKET_TEST_ENGINES']?.split('+') ?? []

/** Where servers that start now store their catalogs: in their data directories, or in PostgreSQL databases. */
let usesPostgres = chosen.includes('postgres')

/** Whether servers that start now store their files in an S3 store. */
let usesS3 = chosen.includes('s3')

/** Data directories of servers with files in an S3 store, and their settings. */
const stores = new Map<string, Promise<Settings>>()

/** Data directories of servers with a database, and its URL. */
const databases = new Map<string, Promise<string>>()

/** From this call to that of the returned function, new servers store their catalogs in PostgreSQL. */
export function usePostgres(): () => void {
  const before = usesPostgres
  usesPostgres = true
  return () => {
    usesPostgres = before
  }
}

export const currentEngine = () => `${usesPostgres ? 'postgres' : 'sqlite'} ${usesS3 ? 's3' : 'disk'}`

/** From this call to that of the returned function, new servers store all files in a bucket of an S3 store. */
export function useS3(): () => void {
  const before = usesS3
  usesS3 = true
  return () => {
    usesS3 = before
  }
}

/** Creates a database, and a place in an S3 store, for a new data directory, as far as servers use them. */
export function prepareDatabase(directory: string): void {
  if (usesS3 && !stores.has(directory)) stores.set(directory, s3Settings())
  if (usesPostgres && !databases.has(directory))
    databases.set(
      directory,
      createDatabase().then(({ url }) => url),
    )
}

/** Lets commands on a copy of a data directory use the database of the original. */
export function shareDatabase(original: string, copy: string): void {
  const database = databases.get(original)
  if (database !== undefined) databases.set(copy, database)
}

/** The settings with which a process uses the catalog and the files of this data directory. */
export async function databaseSettings(directory: string): Promise<Settings> {
  const url = await databases.get(directory)
  return { ...(await stores.get(directory)), ...(url !== undefined && { MEDIABUCKET_DATABASE_URL: url }) }
}
