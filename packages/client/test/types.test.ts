import type { createReadStream } from 'node:fs'
import { expectTypeOf, test } from 'vitest'
import type {
  AnswerError,
  Client,
  ClientOptions,
  Focus,
  Media,
  Page,
  PageLink,
  Problem,
  ProblemError,
  ResumeStore,
  UploadOptions,
  UploadSource,
  VariantSizes,
  Variants,
} from '../src/index.ts'

test('L2 a page has exact types, including null', () => {
  expectTypeOf<Page>().toEqualTypeOf<{
    readonly current_page: number
    readonly data: readonly string[]
    readonly first_page_url: string
    readonly from: number | null
    readonly last_page: number
    readonly last_page_url: string
    readonly links: readonly PageLink[]
    readonly next_page_url: string | null
    readonly path: string
    readonly per_page: number
    readonly prev_page_url: string | null
    readonly to: number | null
    readonly total: number
  }>()
  expectTypeOf<PageLink>().toEqualTypeOf<{
    readonly url: string | null
    readonly label: string
    readonly active: boolean
    readonly page?: number | null | undefined
  }>()
})

test('M1 a media object has exact types, including null', () => {
  expectTypeOf<Media>().toEqualTypeOf<{
    readonly id: string
    readonly url: string
    readonly filename: string | null
    readonly content_type: string
    readonly size: number
    readonly sha256: string
    readonly created_at: string
    readonly expires_at?: string | null | undefined
    readonly width: number | null
    readonly height: number | null
    readonly alt_text?: string | null | undefined
    readonly caption?: string | null | undefined
    readonly labels?: Readonly<Record<string, string>> | undefined
    readonly path?: string | null | undefined
    readonly focus?: Focus | null | undefined
    readonly taken_at?: string | null | undefined
    readonly thumbhash?: string | null | undefined
    readonly duration?: number | null | undefined
    readonly variants?: Variants | null | undefined
    readonly variant_sizes?: VariantSizes | null | undefined
    readonly key?: string | null | undefined
  }>()
})

test('the methods return the documented types', () => {
  expectTypeOf<Client['listPage']>().returns.resolves.toEqualTypeOf<Page>()
  expectTypeOf<Client['upload']>().returns.resolves.toEqualTypeOf<Media>()
  expectTypeOf<Client['describe']>().returns.resolves.toEqualTypeOf<Media>()
  expectTypeOf<Client['deleteMany']>().returns.resolves.toEqualTypeOf<{
    readonly deleted: readonly string[]
    readonly missing: readonly string[]
  }>()
  expectTypeOf<Client['delete']>().returns.resolves.toEqualTypeOf<void>()
  expectTypeOf<Client['get']>().returns.resolves.toEqualTypeOf<Response>()
  expectTypeOf<Client['get']>().parameter(0).toEqualTypeOf<string | URL>()
  expectTypeOf<Client['pages']>().returns.toExtend<AsyncIterable<Page>>()
  expectTypeOf<Client['media']>().returns.toExtend<AsyncIterable<string>>()
  expectTypeOf<Client['items']>().returns.toExtend<AsyncIterable<Media>>()
})

test('url and token are required, other options are not', () => {
  expectTypeOf<{ url: string; token: string }>().toExtend<ClientOptions>()
  expectTypeOf<{ url: URL; token: string; retry: { attempts: 1 } }>().toExtend<ClientOptions>()
  expectTypeOf<{ url: string }>().not.toExtend<ClientOptions>()
  expectTypeOf<{ token: string }>().not.toExtend<ClientOptions>()
})

test('options can be undefined', () => {
  expectTypeOf<{ filename: string | undefined; signal: AbortSignal | undefined }>().toExtend<UploadOptions>()
  expectTypeOf<{ filename: null }>().not.toExtend<UploadOptions>()
})

test('a resume store can be a Map, or asynchronous', () => {
  expectTypeOf<{
    get(key: string): string | undefined
    set(key: string, upload: string): void
    remove(key: string): void
  }>().toExtend<ResumeStore>()
  expectTypeOf<{
    get(key: string): Promise<string | null>
    set(key: string, upload: string): Promise<void>
    remove(key: string): Promise<void>
  }>().toExtend<ResumeStore>()
  expectTypeOf<Storage>().not.toExtend<ResumeStore>()
  expectTypeOf<UploadOptions['resume']>().toEqualTypeOf<ResumeStore | undefined>()
  expectTypeOf<UploadOptions['piecesAbove']>().toEqualTypeOf<number | undefined>()
})

test('every kind of upload source is accepted, and text is not', () => {
  expectTypeOf<File>().toExtend<UploadSource>()
  expectTypeOf<Blob>().toExtend<UploadSource>()
  expectTypeOf<Uint8Array>().toExtend<UploadSource>()
  expectTypeOf<Buffer>().toExtend<UploadSource>()
  expectTypeOf<ReadableStream<Uint8Array>>().toExtend<UploadSource>()
  expectTypeOf<NonNullable<Response['body']>>().toExtend<UploadSource>()
  expectTypeOf<ReturnType<typeof createReadStream>>().toExtend<UploadSource>()
  expectTypeOf<AsyncIterable<Buffer>>().toExtend<UploadSource>()
  expectTypeOf<string>().not.toExtend<UploadSource>()
  expectTypeOf<ArrayBuffer>().not.toExtend<UploadSource>()
  expectTypeOf<AsyncIterable<string>>().not.toExtend<UploadSource>()
})

test('RFC 9457 a problem has its members and unknown extensions', () => {
  expectTypeOf<ProblemError>().toExtend<AnswerError>()
  expectTypeOf<ProblemError['problem']>().toEqualTypeOf<Problem>()
  expectTypeOf<Problem['code']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<Problem['balance']>().toEqualTypeOf<unknown>()
})
