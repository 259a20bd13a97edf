// Mistakes that no request shows, only the operation of an application.
export const operation = [];
