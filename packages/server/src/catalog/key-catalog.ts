/** A key that signs URLs (docs/interface.md H8). */
export interface SigningKey {
  readonly id: string
  /** 32 bytes. */
  readonly secret: Uint8Array
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** The keys of the catalog that sign URLs. */
export interface KeyCatalog {
  /** All keys in the order of their creation: the last one signs. Never cached. */
  signingKeys(): Promise<readonly SigningKey[]>

  /** Adds a key; with `onlyFirst`, only if there is none. */
  addSigningKey(key: SigningKey, onlyFirst: boolean): Promise<void>

  /** False if there is no such key. */
  removeSigningKey(id: string): Promise<boolean>
}
